// Data providers of react-admin that lose the edits of others. Each wraps the real one.
import type { DataProvider, RaRecord, UpdateParams } from 'ra-core'

type Update = (resource: string, params: UpdateParams) => Promise<{ data: RaRecord }>

function withUpdate(provider: DataProvider, update: Update): DataProvider {
  return { ...provider, update: update as DataProvider['update'] }
}

/** Compares a form with the cached record, whatever version the form was filled from. */
export function compareWithCache(provider: DataProvider): DataProvider {
  return withUpdate(provider, (resource, params) => {
    const { version } = params.previousData as RaRecord
    return provider.update(resource, { ...params, data: { ...params.data, version } })
  })
}

/** Saves a form on the current version, whatever others have changed since. */
export function saveOnCurrentVersion(provider: DataProvider): DataProvider {
  return withUpdate(provider, async (resource, params) => {
    const { data: current } = await provider.getOne<RaRecord>(resource, { id: params.id as string })
    const data = { ...params.data, version: current['version'] as number }
    return provider.update(resource, { ...params, data, previousData: current })
  })
}
