// The form of a record, with its state, its marks and its cards.
import Alert from '@mui/material/Alert'
import Box from '@mui/material/Box'
import Button from '@mui/material/Button'
import Card from '@mui/material/Card'
import FormHelperText from '@mui/material/FormHelperText'
import { useEffect, useRef, type ReactNode } from 'react'
import { PermissionTable } from '../account/permission-table.js'
import { UserActions } from '../account/user-actions.js'
import { ConflictCard } from '../conflict/conflict-card.js'
import { DeletedCard } from '../conflict/deleted-card.js'
import { FieldInput } from '../fields/field-input.js'
import { buildInputId } from '../fields/field-props.js'
import { listFormFields } from '../fields/initial-values.js'
import { RelativeTime } from '../texts/relative-time.js'
import { Page } from '../layout/page.js'
import { getRecordName, type FieldInfo } from '../service/model-info.js'
import { useObservable } from '../service/observable.js'
import { getAccount } from '../service/session.js'
import { useTexts } from '../texts/texts.js'
import { BackLink } from '../layout/back-link.js'
import { findListAddress } from '../list/remembered-place.js'
import { ChangeMark } from './change-mark.js'
import { discardChanges } from '../editor/discard-changes.js'
import type { EditorState } from '../editor/editor-state.js'
import { LostValue } from './lost-value.js'
import { RecordActions } from './record-actions.js'
import type { RecordEditor } from '../editor/record-editor.js'
import { SaveBar } from './save-bar.js'
import { listShownFields } from './shown-fields.js'
import { SystemFields } from './system-fields.js'

const ROLE_MODEL = 'verso.auth.Role'
const USER_MODEL = 'verso.auth.User'

/** Kinds of fields that take the whole width of a form with two columns. */
const WIDE_KINDS: readonly string[] = ['text', 'json', 'owned-list', 'links', 'inverse', 'file']

export function RecordForm({ editor }: { readonly editor: RecordEditor }) {
  const { form } = useTexts()
  const state = useObservable(editor.state)
  const { model, id } = editor
  useSaveShortcut(editor)
  useUnloadWarning(editor)
  useFocusOnFirstError(state, listFormFields(model))
  const title = id === undefined ? form.newTitle(model.title) : getRecordName(state.latest, model.nameField)
  const isPermitted = id === undefined ? model.permissions.create : model.permissions.write
  const canWrite = isPermitted && editor.fields.length > 0
  return (
    <Page
      title={title}
      isNarrow
      above={<BackLink to={findListAddress(model.name)} text={model.title} />}
      actions={<RecordActions editor={editor} />}
    >
      <DraftNotice editor={editor} state={state} />
      {!canWrite && (
        <Alert severity="info" sx={{ mb: 2 }}>
          {form.readonly}
        </Alert>
      )}
      <Card
        component="form"
        noValidate
        aria-label={title}
        sx={{ p: { xs: 2, sm: 3 } }}
        onSubmit={(event: { preventDefault: () => void }) => {
          event.preventDefault()
          void editor.save()
        }}
      >
        <Fields editor={editor} state={state} canWrite={canWrite} />
        {canWrite && <SaveBar editor={editor} state={state} />}
      </Card>
      {id !== undefined && <SystemFields record={state.latest} />}
      {id !== undefined && model.name === USER_MODEL && <UserActions userId={id} />}
      {state.conflict && (
        <ConflictCard
          key={String(state.conflict.theirs['version'])}
          editor={editor}
          conflict={state.conflict}
        />
      )}
      {state.deletion && <DeletedCard editor={editor} deletion={state.deletion} />}
    </Page>
  )
}

interface FieldsProps {
  readonly editor: RecordEditor
  readonly state: EditorState
  readonly canWrite: boolean
}

function Fields({ editor, state, canWrite }: FieldsProps) {
  const { model, id } = editor
  const { values, errors } = state
  return (
    <Box
      sx={{ display: 'grid', gridTemplateColumns: { xs: '1fr', sm: '1fr 1fr' }, columnGap: 2.5, rowGap: 1 }}
    >
      {listShownFields(editor, state).map((field) => {
        const { name } = field
        const Input = model.name === ROLE_MODEL && name === 'permissions' ? RolePermissions : FieldInput
        return (
          <Box
            key={name}
            sx={{ gridColumn: WIDE_KINDS.includes(field.kind) ? '1 / -1' : undefined, minWidth: 0 }}
          >
            <Input
              model={model.name}
              field={canWrite ? field : { ...field, isReadonly: true }}
              path={name}
              // The service computes it, so nobody types into it.
              value={field.isReadonly ? state.latest[name] : values[name]}
              onChange={(value) => editor.setValue(name, value)}
              errors={errors}
              recordId={id}
              version={Number(state.base['version'] ?? 0)}
              note={buildNote(editor, state, field)}
            />
          </Box>
        )
      })}
    </Box>
  )
}

/** What others have saved in the field, or what the person typed and gave up for it. */
function buildNote(editor: RecordEditor, { marks, lost }: EditorState, field: FieldInfo): ReactNode {
  const { name } = field
  const mark = marks[name]
  // One's own change from elsewhere that is already shown needs no word.
  const isOwn = mark?.isAdopted === true && mark.by?.id === getAccount().id
  if (mark && !isOwn)
    return <ChangeMark field={field} mark={mark} onTake={() => editor.setValue(name, mark.value)} />
  if (!Object.hasOwn(lost, name)) return undefined
  return <LostValue field={field} value={lost[name]} onUse={() => editor.setValue(name, lost[name])} />
}

/** Permissions of a role are a table. */
function RolePermissions({ value, onChange, errors, path, field, note }: Parameters<typeof FieldInput>[0]) {
  return (
    <>
      <PermissionTable
        value={value}
        onChange={onChange}
        errors={errors}
        path={path}
        isDisabled={field.isReadonly}
      />
      {note && <FormHelperText component="div">{note}</FormHelperText>}
    </>
  )
}

/** Tells that a draft was brought back, and lets the person drop it. */
function DraftNotice({ editor, state }: { readonly editor: RecordEditor; readonly state: EditorState }) {
  const { form } = useTexts()
  if (state.draftOf === undefined) return null
  const isOutdated = state.base['version'] !== state.latest['version']
  const discard = () => discardChanges(editor)
  return (
    <Alert
      severity="info"
      sx={{ mb: 2 }}
      action={
        <Button color="inherit" size="small" onClick={discard}>
          {form.discard}
        </Button>
      }
    >
      {form.draftRestored} <RelativeTime on={state.draftOf} />. {isOutdated && form.draftNewer}
    </Alert>
  )
}

function useSaveShortcut(editor: RecordEditor): void {
  useEffect(() => {
    const onKey = (event: KeyboardEvent) => {
      if (event.key.toLowerCase() !== 's' || !(event.ctrlKey || event.metaKey) || event.altKey) return
      event.preventDefault()
      void editor.save()
    }
    addEventListener('keydown', onKey)
    return () => removeEventListener('keydown', onKey)
  }, [editor])
}

/** Secrets and files are in no draft, so the browser asks before it closes a page with them. */
function useUnloadWarning(editor: RecordEditor): void {
  useEffect(() => {
    const onUnload = (event: BeforeUnloadEvent) => {
      if (editor.isDirty && !editor.isDraftKept) event.preventDefault()
    }
    addEventListener('beforeunload', onUnload)
    return () => removeEventListener('beforeunload', onUnload)
  }, [editor])
}

/** After a refused save, the focus goes to the first field with a fault, in the order of the form. */
function useFocusOnFirstError({ errors, status }: EditorState, fields: readonly FieldInfo[]): void {
  const focused = useRef<EditorState['errors']>({})
  useEffect(() => {
    if (status !== 'failed' || focused.current === errors) return
    focused.current = errors
    const paths = fields.flatMap(({ name }) =>
      Object.keys(errors).filter(
        (path) => path === name || path.startsWith(`${name}[`) || path.startsWith(`${name}.`),
      ),
    )
    const [first] = paths
    if (first !== undefined) document.getElementById(buildInputId(first))?.focus()
  }, [errors, status, fields])
}
