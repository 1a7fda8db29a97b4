import Typography from '@mui/material/Typography'
import { nameAuthor } from '../texts/author-name.js'
import { RelativeTime } from '../texts/relative-time.js'
import { isUserReference } from '../service/people.js'
import { useTexts } from '../texts/texts.js'
import type { RecordValues } from '../editor/record-values.js'

/** Who created and changed the record, and when. */
export function SystemFields({ record }: { readonly record: RecordValues }) {
  const { form } = useTexts()
  return (
    <Typography variant="body2" color="text.secondary" sx={{ mt: 1.5, px: 0.5 }}>
      {form.about(String(record['id']), String(record['version']))}{' '}
      <Author text={form.createdBy} by={record['createdBy']} on={record['createdOn']} />{' '}
      <Author text={form.updatedBy} by={record['updatedBy']} on={record['updatedOn']} />
    </Typography>
  )
}

function Author({
  text,
  by,
  on,
}: {
  readonly text: (who: string) => string
  readonly by: unknown
  readonly on: unknown
}) {
  const who = nameAuthor(isUserReference(by) ? by : null)
  if (typeof on !== 'string') return null
  return (
    <>
      {text(who)} <RelativeTime on={on} />.
    </>
  )
}
