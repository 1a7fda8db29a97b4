// A small image, or the beginning of a text.
import Box from '@mui/material/Box'
import { useEffect, useState } from 'react'
import { useTexts } from '../texts/texts.js'

const START_BYTES = 2_048
const PREVIEW_HEIGHT = 112
const IMAGES: readonly string[] = ['image/png', 'image/jpeg', 'image/gif', 'image/webp']

interface FilePreviewProps {
  readonly name: string
  readonly type: string
  readonly content: Blob | undefined
}

export function FilePreview({ name, type, content }: FilePreviewProps) {
  if (!content || content.size === 0) return null
  if (IMAGES.includes(type)) return <ImagePreview name={name} content={content} />
  return type.startsWith('text/') ? <TextPreview name={name} content={content} /> : null
}

type ContentProps = Readonly<{ name: string; content: Blob }>

function ImagePreview({ name, content }: ContentProps) {
  const { fields } = useTexts()
  const url = useBlobUrl(content)
  return (
    // The height is there before the image is.
    <Box sx={{ height: PREVIEW_HEIGHT, mt: 1 }}>
      {url !== undefined && (
        <Box
          component="img"
          src={url}
          alt={fields.preview(name)}
          sx={{ maxWidth: '100%', maxHeight: '100%', borderRadius: 1, border: 1, borderColor: 'divider' }}
        />
      )}
    </Box>
  )
}

function TextPreview({ name, content }: ContentProps) {
  const { fields } = useTexts()
  const text = useStart(content)
  return (
    <Box
      component="pre"
      role="region"
      aria-label={fields.previewStart(name)}
      tabIndex={0}
      sx={{
        m: 0,
        mt: 1,
        p: 1,
        height: PREVIEW_HEIGHT,
        overflow: 'auto',
        border: 1,
        borderColor: 'divider',
        borderRadius: 1,
        fontSize: '.8rem',
        whiteSpace: 'pre-wrap',
        overflowWrap: 'anywhere',
      }}
    >
      {text}
    </Box>
  )
}

/** The URL holds the content in memory until it is revoked. */
function useBlobUrl(blob: Blob): string | undefined {
  const [url, setUrl] = useState<string>()
  useEffect(() => {
    const created = URL.createObjectURL(blob)
    setUrl(created)
    return () => URL.revokeObjectURL(created)
  }, [blob])
  return url
}

function useStart(blob: Blob): string {
  const [text, setText] = useState('')
  useEffect(() => {
    let isCurrent = true
    // A file that was deleted from the disk since it was chosen cannot be read.
    const show = (start: string) => {
      if (isCurrent) setText(start)
    }
    blob
      .slice(0, START_BYTES)
      .text()
      .then(show, () => show(''))
    return () => {
      isCurrent = false
    }
  }, [blob])
  return text
}
