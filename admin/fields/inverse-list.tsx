// The other side of a relation: the first records, and a link to all of them. They are edited in their own forms.
import Box from '@mui/material/Box'
import Link from '@mui/material/Link'
import { useQuery } from '@tanstack/react-query'
import { Link as RouterLink } from 'react-router'
import { explainFailure } from '../layout/message-list.js'
import { dataProvider } from '../service/data.js'
import { buildListPath } from '../service/paths.js'
import { useTexts } from '../texts/texts.js'
import { FieldFrame } from './field-frame.js'
import { buildInputId, type FieldInputProps } from './field-props.js'
import { RelatedRecord } from './field-value.js'

const MAX_RECORDS = 20

function useInverseRecords({ field, recordId }: Pick<FieldInputProps, 'field' | 'recordId'>) {
  const { target = '', targetName, mappedBy = '' } = field
  return useQuery({
    queryKey: [target, 'inverse', mappedBy, recordId, targetName],
    queryFn: ({ signal }) =>
      dataProvider.getManyReference(target, {
        target: mappedBy,
        id: recordId ?? 0,
        pagination: { page: 1, perPage: MAX_RECORDS },
        sort: { field: targetName ?? 'id', order: 'ASC' },
        filter: {},
        meta: { fields: targetName === undefined ? ['id'] : [targetName] },
        signal,
      }),
    enabled: recordId !== undefined && mappedBy !== '',
  })
}

export function InverseList(props: FieldInputProps) {
  const { field, path } = props
  const labelId = `${buildInputId(path)}-label`
  return (
    <FieldFrame input={props}>
      <Box id={buildInputId(path)} tabIndex={-1} role="group" aria-labelledby={labelId} sx={{ px: 1.75 }}>
        <Box id={labelId} sx={{ fontSize: '.75rem', color: 'text.secondary' }}>
          {field.title}
        </Box>
        <InverseRecords {...props} />
      </Box>
    </FieldFrame>
  )
}

function InverseRecords({ field, recordId }: FieldInputProps) {
  const { fields, common } = useTexts()
  const { data, error } = useInverseRecords({ field, recordId })
  if (recordId === undefined) return <Box sx={{ color: 'text.secondary' }}>{fields.inverseUnsaved}</Box>
  if (error) return <Box sx={{ color: 'error.main' }}>{explainFailure(error)}</Box>
  if (!data) return <Box sx={{ color: 'text.secondary' }}>{common.loading}</Box>
  if (data.data.length === 0) return <Box sx={{ color: 'text.secondary' }}>{fields.inverseNone}</Box>
  const filter = JSON.stringify({ [field.mappedBy ?? '']: { id: recordId } })
  const count = data.total ?? data.data.length
  return (
    <>
      <Box
        component="ul"
        sx={{ listStyle: 'none', m: 0, p: 0, display: 'flex', flexWrap: 'wrap', columnGap: 2, rowGap: 0.25 }}
      >
        {data.data.map((record: Readonly<Record<string, unknown>>) => (
          <li key={String(record['id'])}>
            <RelatedRecord field={field} value={record} />
          </li>
        ))}
      </Box>
      <Link
        component={RouterLink}
        to={`${buildListPath(field.target ?? '')}?filter=${encodeURIComponent(filter)}`}
        sx={{ fontSize: '.85rem' }}
      >
        {count > data.data.length ? fields.inverseAll(count) : fields.inverseList}
      </Link>
    </>
  )
}
