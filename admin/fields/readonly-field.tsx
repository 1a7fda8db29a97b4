// A field that the person cannot write: its value as text, which can be selected and copied.
import Box from '@mui/material/Box'
import { useTexts } from '../texts/texts.js'
import { FieldFrame } from './field-frame.js'
import { buildInputId, type FieldInputProps } from './field-props.js'
import { FieldValue } from './field-value.js'
import { StoredFile } from './stored-file.js'

export function ReadonlyField(props: FieldInputProps) {
  const { field, path, value, model, recordId, version } = props
  const { fields } = useTexts()
  const isStoredFile = field.kind === 'file' && recordId !== undefined
  return (
    <FieldFrame input={props}>
      <Box
        id={buildInputId(path)}
        tabIndex={-1}
        role="group"
        aria-labelledby={`${buildInputId(path)}-label`}
        sx={{ px: 1.75, minHeight: 40 }}
      >
        <Box id={`${buildInputId(path)}-label`} sx={{ fontSize: '.75rem', color: 'text.secondary' }}>
          {field.title} ({field.isComputed ? fields.computed : fields.readonly})
        </Box>
        {isStoredFile ? (
          <StoredFile model={model} recordId={recordId} field={field.name} version={version} />
        ) : (
          <FieldValue field={field} value={value} />
        )}
      </Box>
    </FieldFrame>
  )
}
