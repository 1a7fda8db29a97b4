// The addresses of the pages, below `#`.
export function buildListPath(model: string): string {
  return `/records/${encodeURIComponent(model)}`
}

export function buildRecordPath(model: string, id: number | 'new'): string {
  return `${buildListPath(model)}/${id}`
}

export function buildHistoryPath(model: string, id: number): string {
  return `${buildRecordPath(model, id)}/history`
}

export function buildDeletedPath(model: string): string {
  return `${buildListPath(model)}/deleted`
}
