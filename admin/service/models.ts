// What the service says about its models: their names, and the fields of each.
import { useQuery } from '@tanstack/react-query'
import { readModel, type Description, type ModelInfo } from './model-info.js'
import { client } from './session.js'

export async function fetchModel(name: string): Promise<ModelInfo> {
  const { body } = await client.request('GET', `/ws/meta/fields/${encodeURIComponent(name)}`)
  return readModel((body as { data: Description }).data)
}

/** Models change only when the service restarts, so each is read once in a page. */
const FOR_EVER = { staleTime: Infinity, gcTime: Infinity }

export function useModel(name: string, isWanted = true) {
  return useQuery({
    queryKey: ['verso', 'model', name],
    queryFn: () => fetchModel(name),
    enabled: isWanted,
    ...FOR_EVER,
  })
}

/** The names of the models that the person has any permission for. */
export function useModelNames() {
  return useQuery({
    queryKey: ['verso', 'models'],
    queryFn: async () => {
      const { body } = await client.request('GET', '/ws/meta/models')
      return (body as { data: readonly string[] }).data
    },
    ...FOR_EVER,
  })
}
