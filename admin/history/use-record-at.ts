// Reads a record as it was at a version.
import { useQuery } from '@tanstack/react-query'
import { client } from '../service/session.js'

type PlainRecord = Readonly<Record<string, unknown>>

/** A version never changes, so it is read once. Undefined reads nothing. */
export function useRecordAt(model: string, id: number, version: number | undefined) {
  return useQuery({
    queryKey: ['verso', 'record-at', model, id, version],
    queryFn: async ({ signal }): Promise<PlainRecord> =>
      await client.model(model).read(id, { asOf: version }, { signal }),
    enabled: version !== undefined,
    staleTime: Infinity,
  })
}

/** The record as it is now; undefined while it is deleted. Below the name of the model, so that each change of the model reads it again. */
export function useCurrentRecord(model: string, id: number, isDeleted: boolean) {
  return useQuery({
    queryKey: [model, 'current-record', id],
    queryFn: async ({ signal }): Promise<PlainRecord> => await client.model(model).read(id, {}, { signal }),
    enabled: !isDeleted,
  })
}
