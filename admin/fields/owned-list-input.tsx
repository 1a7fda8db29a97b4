// Lines that are part of the record, edited in place and saved with it.
import Box from '@mui/material/Box'
import Button from '@mui/material/Button'
import { useMemo, useState } from 'react'
import { AddIcon } from '../layout/icons.js'
import type { FieldInfo, ModelInfo } from '../service/model-info.js'
import { useModel } from '../service/models.js'
import { useTexts } from '../texts/texts.js'
import { describeInput, FieldFrame, findError } from './field-frame.js'
import { buildInputId, type FieldInputProps } from './field-props.js'
import { formatRelated } from './format-value.js'
import { OwnedLine, RemovedLineRow } from './owned-line.js'
import { findLineKey, listLineFields } from './owned-lines.js'
import { buildAddId, buildUndoId, useOwnedLines } from './use-owned-lines.js'

/** More lines are shown on request: each has several inputs. */
const SHOWN_LINES = 50

export function OwnedListInput(props: FieldInputProps) {
  const { field, path } = props
  const { common } = useTexts()
  const { data: model, error } = useModel(field.target ?? '')
  const labelId = `${buildInputId(path)}-label`
  const isInvalid = findError(props) !== undefined
  return (
    <FieldFrame input={props}>
      <Box
        id={buildInputId(path)}
        tabIndex={-1}
        role="group"
        aria-labelledby={labelId}
        aria-describedby={describeInput(path)}
        sx={{ border: 1, borderColor: isInvalid ? 'error.main' : 'divider', borderRadius: 1 }}
      >
        <Box id={labelId} sx={{ px: 1.5, pt: 1, fontSize: '.85rem', fontWeight: 600 }}>
          {field.title}
        </Box>
        {model && <OwnedLines input={props} model={model} />}
        {!model && (
          <Box sx={{ p: 1.5, color: error ? 'error.main' : 'text.secondary' }}>
            {error?.message ?? common.loading}
          </Box>
        )}
      </Box>
    </FieldFrame>
  )
}

interface OwnedLinesProps {
  readonly input: FieldInputProps
  readonly model: ModelInfo
}

function OwnedLines({ input, model }: OwnedLinesProps) {
  const { field, path, errors, isDisabled } = input
  const { fields: texts } = useTexts()
  const [hasAll, setAll] = useState(false)
  const { lines, shown, change, add, remove, undo } = useOwnedLines(input, model)
  const fields = useMemo(() => listLineFields(model, field.mappedBy), [model, field.mappedBy])
  // A line with an error is always shown.
  const lastError = lines.findLastIndex(
    (_, index) => findLineErrors(errors, `${path}[${index}]`) !== NO_ERRORS,
  )
  const limit = hasAll ? shown.length : Math.max(SHOWN_LINES, lastError + 1)
  const addShown = () => {
    setAll(true)
    add()
  }
  return (
    <>
      {shown.length === 0 && <Box sx={{ px: 1.5, py: 0.5, color: 'text.secondary' }}>{texts.noLines}</Box>}
      <Box component="ul" aria-label={field.title} sx={{ listStyle: 'none', m: 0, p: 0 }}>
        {shown
          .slice(0, limit)
          .map(({ line, index }, position) =>
            index === undefined ? (
              <RemovedLineRow
                key={findLineKey(line, -1)}
                id={buildUndoId(path, line)}
                name={formatRelated(line, field)}
                isDisabled={isDisabled}
                onUndo={() => undo(line, position)}
              />
            ) : (
              <OwnedLine
                key={findLineKey(line, index)}
                model={model}
                fields={fields}
                line={line}
                index={index}
                path={`${path}[${index}]`}
                errors={findLineErrors(errors, `${path}[${index}]`)}
                isDisabled={isDisabled}
                onChange={change}
                onRemove={remove}
              />
            ),
          )}
      </Box>
      <Box sx={{ p: 1, display: 'flex', gap: 1, flexWrap: 'wrap' }}>
        {shown.length > limit && (
          <Button size="small" onClick={() => setAll(true)}>
            {texts.moreLines(shown.length - limit)}
          </Button>
        )}
        {model.permissions.create && (
          <Button
            id={buildAddId(path)}
            size="small"
            startIcon={<AddIcon />}
            disabled={isDisabled}
            aria-label={`${field.title}: ${texts.addLine}`}
            onClick={addShown}
          >
            {texts.addLine}
          </Button>
        )}
      </Box>
      <LineHelp fields={fields} />
    </>
  )
}

type Errors = FieldInputProps['errors']
const NO_ERRORS: Errors = {}

/** Lines without an error all have the same object, so that they are not rendered again when an error goes elsewhere. */
function findLineErrors(errors: Errors, path: string): Errors {
  const own = Object.entries(errors).filter(([each]) => each === path || each.startsWith(`${path}.`))
  return own.length === 0 ? NO_ERRORS : Object.fromEntries(own)
}

/** The help of the fields, once for all lines. */
function LineHelp({ fields }: { readonly fields: readonly FieldInfo[] }) {
  const helped = fields.filter(({ help }) => help !== '')
  if (helped.length === 0) return null
  return (
    <Box
      component="dl"
      sx={{ m: 0, px: 1.5, pb: 1, fontSize: '.75rem', color: 'text.secondary', overflowWrap: 'anywhere' }}
    >
      {helped.map(({ name, title, help }) => (
        <Box key={name}>
          <Box component="dt" sx={{ display: 'inline', fontWeight: 600 }}>
            {title}:{' '}
          </Box>
          <Box component="dd" sx={{ display: 'inline', m: 0 }}>
            {help}
          </Box>
        </Box>
      ))}
    </Box>
  )
}
