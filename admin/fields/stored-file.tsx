// The file that the service has: name, type, size, a preview, and a link to download it.
import Box from '@mui/material/Box'
import Link from '@mui/material/Link'
import { useQuery } from '@tanstack/react-query'
import { RequestError } from 'verso-records/client'
import { explainFailure } from '../layout/message-list.js'
import { DownloadIcon } from '../layout/icons.js'
import { BASE_PATH } from '../service/base-path.js'
import { DESCRIPTIONS } from '../service/data.js'
import { client } from '../service/session.js'
import { useTexts } from '../texts/texts.js'
import { FilePreview } from './file-preview.js'
import { formatBytes } from './format-value.js'
import { UnseenText } from './field-value.js'

/** Enough to show how a text begins. */
const START_BYTES = 2_048
/** Larger images are not loaded only to be shown small. */
const MAX_IMAGE_BYTES = 10 * 1024 * 1024

export interface StoredFileProps {
  readonly model: string
  readonly recordId: number
  readonly field: string
  readonly version: number | undefined
}

interface StoredFileInfo {
  readonly name: string
  readonly type: string
  readonly size: number
  /** The whole image, or the beginning of a text. */
  readonly content: Blob | undefined
}

interface FilePlace extends Omit<StoredFileProps, 'version'> {
  readonly signal: AbortSignal
}

async function readStart({ model, recordId, field, signal }: FilePlace) {
  const records = client.model(model)
  try {
    return await records.download(recordId, field, { signal, range: { first: 0, last: START_BYTES - 1 } })
  } catch (error) {
    // A file without any bytes has no first byte, either.
    if (error instanceof RequestError && error.kind === 'range')
      return records.download(recordId, field, { signal })
    throw error
  }
}

/** Null if the field is empty. */
async function readStoredFile(place: FilePlace): Promise<StoredFileInfo | null> {
  const start = await readStart(place)
  if (!start) return null
  const { name, type } = start
  const beginning = await start.blob()
  const size = start.total ?? beginning.size
  const info = { name, type, size }
  if (type.startsWith('text/')) return { ...info, content: beginning }
  if (!type.startsWith('image/') || size > MAX_IMAGE_BYTES) return { ...info, content: undefined }
  const { model, recordId, field, signal } = place
  const whole =
    size <= START_BYTES
      ? beginning
      : await (await client.model(model).download(recordId, field, { signal }))?.blob()
  return { ...info, content: whole }
}

export function useStoredFile({ model, recordId, field, version }: StoredFileProps) {
  return useQuery({
    // Not below the name of the model: the file of a version stays, whatever records others change.
    queryKey: [DESCRIPTIONS, 'file', model, recordId, field, version],
    queryFn: ({ signal }) => readStoredFile({ model, recordId, field, signal }),
  })
}

export function StoredFile(props: StoredFileProps) {
  const { fields, common } = useTexts()
  const { data, error, isPending } = useStoredFile(props)
  if (isPending) return <Box sx={{ color: 'text.secondary' }}>{common.loading}</Box>
  if (error) return <Box sx={{ color: 'error.main' }}>{explainFailure(error)}</Box>
  if (!data) return <Box sx={{ color: 'text.secondary' }}>{fields.noFile}</Box>
  const { model, recordId, field } = props
  const url = `${BASE_PATH}/ws/rest/${encodeURIComponent(model)}/${recordId}/${encodeURIComponent(field)}/download`
  return (
    <Box sx={{ minWidth: 0 }}>
      <Link
        href={url}
        download={data.name}
        sx={{
          display: 'inline-flex',
          alignItems: 'center',
          gap: 0.5,
          overflowWrap: 'anywhere',
          verticalAlign: 'bottom',
        }}
      >
        <DownloadIcon fontSize="small" />
        <UnseenText>{fields.download}</UnseenText>
        {data.name}
      </Link>
      <FileFacts type={data.type} size={data.size} />
      <FilePreview name={data.name} type={data.type} content={data.content} />
    </Box>
  )
}

export function FileFacts({ type, size }: { readonly type: string; readonly size: number }) {
  return (
    <Box component="span" sx={{ ml: 1, fontSize: '.8rem', color: 'text.secondary' }}>
      {[type.split(';')[0], formatBytes(size)].filter((text) => text !== '').join(', ')}
    </Box>
  )
}
