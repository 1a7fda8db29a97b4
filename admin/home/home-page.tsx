// The first page: what Verso is for, tried in a minute, and the way to the records.
import Button from '@mui/material/Button'
import Card from '@mui/material/Card'
import Link from '@mui/material/Link'
import Stack from '@mui/material/Stack'
import Typography from '@mui/material/Typography'
import { useQuery } from '@tanstack/react-query'
import { Link as RouterLink } from 'react-router'
import { Page } from '../layout/page.js'
import { BASE_PATH } from '../service/base-path.js'
import { getRecordName, shortenName, toTitle, type ModelInfo } from '../service/model-info.js'
import { fetchModel, useModelNames } from '../service/models.js'
import { buildHistoryPath, buildListPath, buildRecordPath } from '../service/paths.js'
import { client, getAccount } from '../service/session.js'
import { useTexts } from '../texts/texts.js'

/** Models of the service itself are no place to try something. */
const SYSTEM = /^(verso\.|com\.axelor\.meta\.)/
const TRIED_MODELS = 6
const SHOWN_MODELS = 12

interface Sample {
  readonly model: ModelInfo
  readonly id: number
  readonly name: string
}

export function HomePage() {
  const { home } = useTexts()
  const { name, username } = getAccount()
  const { data: names = [], isSuccess } = useModelNames()
  const own = names.filter((model) => !SYSTEM.test(model))
  const { data: sample } = useQuery({
    queryKey: ['verso', 'sample', own],
    queryFn: () => findSample(own),
    enabled: own.length > 0,
  })
  return (
    <Page title={home.welcome(name ?? username)} isNarrow>
      <Stack spacing={2}>
        {sample && <TryIt sample={sample} />}
        {isSuccess && <Models names={own} />}
        <Card sx={{ p: 3 }}>
          <Typography component="h2" variant="h2" sx={{ mb: 1 }}>
            {home.programsTitle}
          </Typography>
          <Typography sx={{ mb: 1 }}>{home.programsText}</Typography>
          <Link href={`${BASE_PATH}/docs`}>{home.apiReference}</Link>
        </Card>
      </Stack>
    </Page>
  )
}

function TryIt({ sample: { model, id, name } }: { readonly sample: Sample }) {
  const { home } = useTexts()
  const path = buildRecordPath(model.name, id)
  return (
    <Card sx={{ p: 3 }}>
      <Typography component="h2" variant="h2" sx={{ mb: 1 }}>
        {home.tryTitle}
      </Typography>
      <Typography>{home.tryText}</Typography>
      <Typography component="ol" sx={{ pl: 3, '& li': { mb: 0.5 } }}>
        <li>{home.step1}</li>
        <li>{home.step2}</li>
        <li>{home.step3}</li>
        <li>
          {home.step4}{' '}
          <Link component={RouterLink} to={buildHistoryPath(model.name, id)}>
            {home.history}
          </Link>
        </li>
      </Typography>
      <Typography sx={{ mb: 1.5, fontWeight: 600 }}>{home.openRecord(`${model.title} “${name}”`)}</Typography>
      <Stack direction="row" spacing={1.5} useFlexGap sx={{ flexWrap: 'wrap' }}>
        <Button variant="contained" component="a" href={`#${path}`} target="_blank" rel="noopener">
          {home.openFirst}
        </Button>
        <Button variant="contained" component="a" href={`#${path}`} target="_blank" rel="noopener">
          {home.openSecond}
        </Button>
      </Stack>
    </Card>
  )
}

function Models({ names }: { readonly names: readonly string[] }) {
  const { home, menu } = useTexts()
  const more = names.length - SHOWN_MODELS
  return (
    <Card component="section" sx={{ p: 3 }}>
      <Typography component="h2" variant="h2" sx={{ mb: 1 }}>
        {home.modelsTitle}
      </Typography>
      {names.length === 0 && <Typography>{home.noModels}</Typography>}
      <Stack direction="row" spacing={1} useFlexGap sx={{ flexWrap: 'wrap' }}>
        {names.slice(0, SHOWN_MODELS).map((name) => (
          <Button key={name} variant="outlined" component={RouterLink} to={buildListPath(name)}>
            {toTitle(shortenName(name))}
          </Button>
        ))}
      </Stack>
      {more > 0 && (
        <Typography color="text.secondary" sx={{ mt: 1 }}>
          {menu.moreModels(more)}
        </Typography>
      )}
    </Card>
  )
}

/** Finds a record to try things with: of the model with the most records among the first ones. */
async function findSample(names: readonly string[]): Promise<Sample | null> {
  const pages = await Promise.all(
    names.slice(0, TRIED_MODELS).map(async (name) => {
      const { data, total } = await client.model(name).find({ limit: 1 })
      return { name, record: data[0], total }
    }),
  )
  const [best] = pages.sort((left, right) => right.total - left.total)
  if (!best?.record) return null
  const model = await fetchModel(best.name)
  const { record } = best
  return { model, id: record.id, name: getRecordName(record, model.nameField) }
}
