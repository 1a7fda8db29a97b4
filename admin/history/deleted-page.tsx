// The deleted records of a model, the newest first.
import Alert from '@mui/material/Alert'
import Button from '@mui/material/Button'
import TextField from '@mui/material/TextField'
import Typography from '@mui/material/Typography'
import { useInfiniteQuery } from '@tanstack/react-query'
import { useState } from 'react'
import { useParams } from 'react-router'
import type { DeletedList } from 'verso-records/client'
import { explainFailure } from '../layout/message-list.js'
import { Loading } from '../layout/loading.js'
import { Page } from '../layout/page.js'
import { useDebounced } from '../fields/use-debounced.js'
import { useModel } from '../service/models.js'
import { shortenName, type ModelInfo } from '../service/model-info.js'
import { findListAddress } from '../list/remembered-place.js'
import { client } from '../service/session.js'
import { useTexts } from '../texts/texts.js'
import { BackLink } from '../layout/back-link.js'
import { DeletedTable } from './deleted-table.js'

const PAGE_SIZE = 20

export function DeletedPage() {
  const { model: name = '' } = useParams()
  const { history } = useTexts()
  const { data: model, error } = useModel(name)
  const title = model?.title ?? shortenName(name)
  return (
    <Page
      title={history.deletedOf(title)}
      above={<BackLink to={findListAddress(name)} text={history.toList(title)} />}
      isNarrow
    >
      {error && <Alert severity="error">{explainFailure(error)}</Alert>}
      {model && <DeletedRecords key={name} model={model} />}
    </Page>
  )
}

function DeletedRecords({ model }: { readonly model: ModelInfo }) {
  const { history, common } = useTexts()
  const [typed, setTyped] = useState('')
  const q = useDebounced(typed.trim())
  const query = useDeleted(model.name, q)
  const changes = query.data?.pages.flatMap(({ data }) => data) ?? []
  return (
    <>
      <TextField
        type="search"
        label={history.findDeleted}
        value={typed}
        onChange={(event) => setTyped(event.target.value)}
        sx={{ mb: 2, maxWidth: 420 }}
      />
      {query.error && <Alert severity="error">{explainFailure(query.error)}</Alert>}
      {query.isPending && <Loading />}
      {query.isSuccess && changes.length === 0 && !query.hasNextPage && (
        <Typography role="status" color="text.secondary">
          {q === '' ? history.noneDeleted : history.noneFound}
        </Typography>
      )}
      {changes.length > 0 && <DeletedTable model={model} changes={changes} />}
      {query.hasNextPage && (
        <Button
          variant="outlined"
          sx={{ mt: 2 }}
          disabled={query.isFetchingNextPage}
          onClick={() => void query.fetchNextPage()}
        >
          {query.isFetchingNextPage ? common.loading : common.more}
        </Button>
      )}
    </>
  )
}

/** Below the name of the model, so that each change of the model reads it again. */
function useDeleted(model: string, q: string) {
  return useInfiniteQuery({
    queryKey: [model, 'deleted', q],
    initialPageParam: undefined as number | undefined,
    queryFn: ({ pageParam, signal }): Promise<DeletedList> =>
      client
        .model(model)
        .deleted({ limit: PAGE_SIZE, before: pageParam, q: q === '' ? undefined : q }, { signal }),
    getNextPageParam: ({ next }) => next,
    placeholderData: (previous) => previous,
  })
}
