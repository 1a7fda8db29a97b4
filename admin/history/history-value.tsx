// The value of a field as the change log has it. The log has only the ids of related records: their names are read here.
import { useQuery } from '@tanstack/react-query'
import { useMemo } from 'react'
import { FieldValue } from '../fields/field-value.js'
import { dataProvider } from '../service/data.js'
import type { FieldInfo } from '../service/model-info.js'

interface HistoryValueProps {
  readonly field: FieldInfo
  readonly value: unknown
  readonly isShort?: boolean | undefined
}

export function HistoryValue({ field, value, isShort }: HistoryValueProps) {
  const named = useNamedValue(field, value)
  return <FieldValue field={field} value={named} isShort={isShort} />
}

interface Related {
  readonly id: number
  readonly [field: string]: unknown
}

const NAME_STALE_MS = 60_000

function useNamedValue(field: FieldInfo, value: unknown): unknown {
  const { target, targetName } = field
  const ids = useMemo(() => listUnnamed(field, value), [field, value])
  const { data } = useQuery({
    queryKey: ['verso', 'names', target, ids],
    // Calls of the same tick become one request.
    queryFn: async () => {
      const { data: records } = await dataProvider.getMany<Related>(target ?? '', {
        ids,
        meta: { fields: [targetName] },
      })
      return new Map(records.map((record) => [record.id, record[targetName ?? '']]))
    },
    enabled: target !== undefined && targetName !== undefined && ids.length > 0,
    staleTime: NAME_STALE_MS,
  })
  if (!data || targetName === undefined) return value
  const name = (each: unknown) =>
    isRelated(each) && data.has(each.id) ? { ...each, [targetName]: data.get(each.id) } : each
  return Array.isArray(value) ? value.map(name) : name(value)
}

function listUnnamed({ kind, targetName }: FieldInfo, value: unknown): number[] {
  if (kind === 'json' || targetName === undefined) return []
  const values: readonly unknown[] = Array.isArray(value) ? value : [value]
  return values.filter(isRelated).flatMap((each) => (each[targetName] === undefined ? [each.id] : []))
}

function isRelated(value: unknown): value is Related {
  return typeof value === 'object' && value !== null && 'id' in value && typeof value.id === 'number'
}
