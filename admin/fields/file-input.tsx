// A file: the stored one, and the one that the person has chosen, which is uploaded when the form is saved.
import Box from '@mui/material/Box'
import Button from '@mui/material/Button'
import { useQuery } from '@tanstack/react-query'
import { useRef, useState, type DragEvent } from 'react'
import { DeleteIcon, UndoIcon, UploadIcon } from '../layout/icons.js'
import { client } from '../service/session.js'
import { useTexts } from '../texts/texts.js'
import { describeInput, FieldFrame, findError } from './field-frame.js'
import { buildInputId, isPendingFile, type FieldInputProps } from './field-props.js'
import { FilePreview } from './file-preview.js'
import { formatBytes } from './format-value.js'
import { FileFacts, StoredFile, useStoredFile } from './stored-file.js'

const BYTES_PER_MIB = 1024 * 1024

/** In bytes; undefined until it is known. The service checks it again. */
function useUploadLimit(): number | undefined {
  const { data } = useQuery({
    queryKey: ['verso', 'upload-limit'],
    queryFn: async () => {
      const { body } = await client.request('GET', '/ws/public/app/info')
      const size = (body as { data?: { upload?: { maxSize?: number } } }).data?.upload?.maxSize
      return size === undefined ? null : size * BYTES_PER_MIB
    },
    staleTime: Infinity,
  })
  return data ?? undefined
}

export function FileInput(props: FieldInputProps) {
  const { field, path, value } = props
  const { fields } = useTexts()
  const limit = useUploadLimit()
  const [refusal, setRefusal] = useState<string>()
  const [isOver, setOver] = useState(false)
  const change = (next: unknown) => {
    setRefusal(undefined)
    props.onChange(next)
  }
  const choose = (file: File | undefined) => {
    if (!file || props.isDisabled) return
    const isTooLarge = limit !== undefined && file.size > limit
    if (isTooLarge) setRefusal(fields.fileTooLarge(file.name, formatBytes(file.size), formatBytes(limit)))
    else change({ pendingFile: file })
  }
  const drop = (event: DragEvent) => {
    event.preventDefault()
    setOver(false)
    choose(event.dataTransfer.files[0])
  }
  const isInvalid = findError(props, refusal) !== undefined
  return (
    <FieldFrame input={props} problem={refusal}>
      <Box
        role="group"
        aria-labelledby={`${buildInputId(path)}-label`}
        onDragOver={(event) => {
          event.preventDefault()
          setOver(true)
        }}
        onDragLeave={() => setOver(false)}
        onDrop={drop}
        sx={{
          p: 1.5,
          border: 1,
          borderStyle: isOver ? 'solid' : 'dashed',
          borderColor: isInvalid ? 'error.main' : isOver ? 'primary.main' : 'text.secondary',
          borderRadius: 1,
        }}
      >
        <Box
          id={`${buildInputId(path)}-label`}
          sx={{ fontSize: '.75rem', color: isInvalid ? 'error.main' : 'text.secondary', mb: 0.5 }}
        >
          {field.title}
          {field.isRequired && <span aria-hidden="true"> *</span>}
        </Box>
        <CurrentFile {...props} />
        <FileButtons
          input={{ ...props, onChange: change }}
          onChoose={choose}
          isPending={isPendingFile(value)}
        />
      </Box>
    </FieldFrame>
  )
}

function CurrentFile({ model, field, value, recordId, version }: FieldInputProps) {
  const { fields } = useTexts()
  if (isPendingFile(value)) {
    const { pendingFile: file } = value
    if (!file) return <Box>{fields.removedWithForm}</Box>
    return (
      <Box>
        <Box component="span" sx={{ fontWeight: 600, overflowWrap: 'anywhere' }}>
          {file.name}
        </Box>
        <FileFacts type={file.type} size={file.size} />
        <Box sx={{ fontSize: '.8rem', color: 'text.secondary' }}>{fields.savedWithForm}</Box>
        <FilePreview name={file.name} type={file.type} content={file} />
      </Box>
    )
  }
  if (recordId === undefined) return <Box sx={{ color: 'text.secondary' }}>{fields.noFile}</Box>
  return <StoredFile model={model} recordId={recordId} field={field.name} version={version} />
}

interface FileButtonsProps {
  readonly input: FieldInputProps
  readonly onChoose: (file: File | undefined) => void
  readonly isPending: boolean
}

function FileButtons({ input, onChoose, isPending }: FileButtonsProps) {
  const { field, path, onChange, recordId, isDisabled } = input
  const { fields, common } = useTexts()
  const chooser = useRef<HTMLInputElement>(null)
  const chooseLabel = isPending ? fields.replaceFile : fields.chooseFile
  return (
    <Box sx={{ display: 'flex', flexWrap: 'wrap', alignItems: 'center', gap: 1, mt: 1.5 }}>
      <input
        ref={chooser}
        type="file"
        hidden
        aria-hidden="true"
        tabIndex={-1}
        onChange={({ target }) => {
          onChoose(target.files?.[0])
          // The same file can be chosen again after an undo.
          target.value = ''
        }}
      />
      <Button
        id={buildInputId(path)}
        size="small"
        variant="outlined"
        startIcon={<UploadIcon />}
        disabled={isDisabled}
        onClick={() => chooser.current?.click()}
        aria-label={`${field.title}: ${chooseLabel}`}
        aria-describedby={describeInput(path)}
      >
        {chooseLabel}
      </Button>
      <Box component="span" sx={{ fontSize: '.8rem', color: 'text.secondary' }}>
        {fields.orDrop}
      </Box>
      {isPending && (
        // Undefined is the value of a file field that nobody has touched.
        <Button
          size="small"
          startIcon={<UndoIcon />}
          disabled={isDisabled}
          onClick={() => onChange(undefined)}
          aria-label={`${field.title}: ${common.undo}`}
        >
          {common.undo}
        </Button>
      )}
      {!isPending && recordId !== undefined && !field.isRequired && (
        <RemoveButton input={input} recordId={recordId} />
      )}
    </Box>
  )
}

/** Only for a field that has a file. */
function RemoveButton({ input, recordId }: { readonly input: FieldInputProps; readonly recordId: number }) {
  const { model, field, version, onChange, isDisabled } = input
  const { fields } = useTexts()
  const { data } = useStoredFile({ model, recordId, field: field.name, version })
  if (!data) return null
  return (
    <Button
      size="small"
      color="inherit"
      startIcon={<DeleteIcon />}
      disabled={isDisabled}
      onClick={() => onChange({ pendingFile: null })}
      aria-label={`${field.title}: ${fields.removeFile}`}
    >
      {fields.removeFile}
    </Button>
  )
}
