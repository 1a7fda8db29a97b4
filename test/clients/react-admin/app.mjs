// A small application of react-admin without its user interface: a list with related records, and a form.
import { connect } from 'verso-records/client'
import { createDataProvider } from 'verso-records/react-admin'
import {
  CoreAdminContext,
  EditBase,
  Form,
  ListBase,
  useDelete,
  useGetMany,
  useInput,
  useListContext,
  useNotificationContext,
  useNotify,
} from 'ra-core'
import { createElement as element, useState } from 'react'
import { createRoot } from 'react-dom/client'

const PERSON = 'rel.Person'

/** A row asks for its own related records: only the data provider can put the requests of all rows together. */
function Row({ person, edit }) {
  const company = useGetMany('rel.Company', { ids: [person.company.id] })
  const boss = useGetMany(PERSON, { ids: person.boss ? [person.boss.id] : [] })
  const notify = useNotify()
  const onError = ({ message }) => notify(message)
  const [remove] = useDelete(PERSON, { id: person.id, previousData: person }, { onError })
  return element(
    'li',
    {},
    element('span', {}, `${person.name}: ${company.data?.[0]?.code}, ${boss.data?.[0]?.name ?? 'no boss'}`),
    element('button', { onClick: () => edit(person.id) }, `Edit ${person.name}`),
    element('button', { onClick: () => remove() }, `Delete ${person.name}`),
  )
}

function Rows({ edit }) {
  const { data = [], total } = useListContext()
  const rows = data.map((person) => element(Row, { key: person.id, person, edit }))
  return element('section', {}, element('p', {}, `${total} people`), element('ul', {}, rows))
}

function Input({ source, label }) {
  const { field, fieldState } = useInput({ source, defaultValue: '' })
  return element(
    'label',
    {},
    label,
    element('input', { ...field, value: field.value ?? '' }),
    element('em', {}, fieldState.error ? `${label}: ${fieldState.error.message}` : ''),
  )
}

function Editor({ id }) {
  const [conflict, setConflict] = useState()
  const mutationOptions = {
    onSuccess: ({ version }) => setConflict(`saved as version ${version}`),
    onError: ({ status, body }) => {
      if (body.kind !== 'conflict') return
      const { base, ours, theirs, current } = body
      setConflict(`${status}: ${base.name}, ${ours.name}, ${theirs.name}, version ${current}`)
    },
  }
  const form = element(
    Form,
    {},
    element(Input, { source: 'name', label: 'Name' }),
    element(Input, { source: 'born', label: 'Born' }),
    element(Input, { source: 'company.id', label: 'Company' }),
    element('button', { type: 'submit' }, 'Save'),
    element('output', {}, conflict),
  )
  return element(
    EditBase,
    { resource: PERSON, id, mutationMode: 'pessimistic', redirect: false, mutationOptions },
    form,
  )
}

function Notifications() {
  const { notifications } = useNotificationContext()
  return element('p', { role: 'status' }, notifications.map(({ message }) => message).join(' '))
}

function App() {
  const [id, edit] = useState()
  const list = element(
    ListBase,
    { resource: PERSON, perPage: 100, disableSyncWithLocation: true, queryOptions: { meta } },
    element(Rows, { edit }),
  )
  return element(
    CoreAdminContext,
    { dataProvider },
    list,
    id && element(Editor, { id, key: id }),
    element(Notifications),
  )
}

const meta = { fields: ['name', 'company', 'boss'] }
const dataProvider = createDataProvider(connect('/'))
createRoot(globalThis.document.querySelector('#root')).render(element(App))
