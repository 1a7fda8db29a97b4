// An input for related records: finds them while a person types. Reads at most 20 records, with their names only.
import Autocomplete from '@mui/material/Autocomplete'
import TextField from '@mui/material/TextField'
import { useQuery } from '@tanstack/react-query'
import { useState, type ReactNode } from 'react'
import { dataProvider } from '../service/data.js'
import { getRecordName } from '../service/model-info.js'
import { useTexts } from '../texts/texts.js'
import { limitSearchText } from './search-text.js'
import { useDebounced } from './use-debounced.js'

const MAX_OPTIONS = 20

/** A related record as records have it: its id, its version as `$version`, and the field that names it. */
export interface RelatedRecord {
  readonly id: number
  readonly [field: string]: unknown
}

interface PickerProps {
  readonly id: string
  readonly label: string
  /** The model of the related records, and its name field. */
  readonly target: string
  readonly targetName: string | undefined
  readonly isDisabled?: boolean | undefined
  readonly isRequired?: boolean | undefined
  /** Shown instead of the helper text. */
  readonly error?: string | undefined
  readonly helperText?: ReactNode
}

interface SinglePickerProps extends PickerProps {
  readonly isMultiple?: false | undefined
  readonly value: RelatedRecord | null
  readonly onChange: (value: RelatedRecord | null) => void
}

interface MultiplePickerProps extends PickerProps {
  readonly isMultiple: true
  readonly value: readonly RelatedRecord[]
  readonly onChange: (value: readonly RelatedRecord[]) => void
}

export type RelationPickerProps = SinglePickerProps | MultiplePickerProps

export function RelationPicker(props: RelationPickerProps) {
  const { id, label, target, targetName, isDisabled = false, isRequired = false, error, helperText } = props
  const { common, list } = useTexts()
  const [isOpen, setOpen] = useState(false)
  const [text, setText] = useState('')
  const { options, isSearching, failure } = useOptions({ target, targetName, text, isOpen })
  return (
    <Autocomplete<RelatedRecord, boolean>
      id={id}
      multiple={props.isMultiple === true}
      value={props.isMultiple ? [...props.value] : props.value}
      onChange={(_, value) => {
        if (props.isMultiple) props.onChange(Array.isArray(value) ? value : [])
        else props.onChange(Array.isArray(value) ? (value[0] ?? null) : value)
      }}
      options={options}
      filterOptions={(all) => all}
      filterSelectedOptions={props.isMultiple === true}
      getOptionLabel={(option) => getRecordName(option, targetName)}
      getOptionKey={(option) => option.id}
      isOptionEqualToValue={(option, value) => option.id === value.id}
      onInputChange={(_, input, reason) => setText(reason === 'input' ? input : '')}
      open={isOpen}
      onOpen={() => setOpen(true)}
      onClose={() => setOpen(false)}
      loading={isSearching}
      loadingText={common.loading}
      noOptionsText={failure?.message ?? list.pickerNoMatch}
      clearText={list.pickerClear}
      openText={list.pickerOpen}
      closeText={common.close}
      disabled={isDisabled}
      renderInput={(parameters) => (
        <TextField
          {...parameters}
          label={label}
          required={isRequired}
          error={error !== undefined}
          helperText={error ?? helperText}
        />
      )}
    />
  )
}

interface OptionsSearch extends Pick<PickerProps, 'target' | 'targetName'> {
  readonly text: string
  readonly isOpen: boolean
}

/** The cache aborts a search that no input waits for any longer. */
function useOptions({ target, targetName, text, isOpen }: OptionsSearch) {
  const settled = useDebounced(text)
  const { data, isFetching, error } = useQuery({
    queryKey: [target, 'picker', targetName, settled],
    queryFn: ({ signal }) => findOptions({ target, targetName, text: settled, signal }),
    enabled: isOpen,
    placeholderData: (previous) => previous,
  })
  const isSearching = text !== settled || isFetching
  return { options: data ?? [], isSearching, failure: error }
}

async function findOptions({
  target,
  targetName,
  text,
  signal,
}: Omit<OptionsSearch, 'isOpen'> & { readonly signal: AbortSignal }) {
  const { data } = await dataProvider.getList(target, {
    pagination: { page: 1, perPage: MAX_OPTIONS },
    sort: { field: targetName ?? 'id', order: 'ASC' },
    filter: buildCondition(text, targetName),
    meta: { fields: targetName === undefined ? ['id'] : [targetName], count: 'none' },
    signal,
  })
  return data.map((record) => toRelated(record as RelatedRecord, targetName))
}

/** Records without a name are found by their ids. */
function buildCondition(text: string, targetName: string | undefined): Readonly<Record<string, unknown>> {
  const id = /^#?(\d{1,15})$/.exec(text.trim())?.[1]
  if (targetName === undefined && id !== undefined) return { id: Number(id) }
  const words = limitSearchText(text)
  return words === '' ? {} : { q: words }
}

/** A related record with `version` would be changed with the record that refers to it. One with `$version` is only a link. */
function toRelated(record: RelatedRecord, targetName: string | undefined): RelatedRecord {
  const link = { id: record.id, $version: record['version'] }
  return targetName === undefined ? link : { ...link, [targetName]: record[targetName] }
}
