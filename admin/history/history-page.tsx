// The history of a record: its changes, two versions side by side, and the record as it was. Works for deleted records, too.
import Alert from '@mui/material/Alert'
import Button from '@mui/material/Button'
import Tab from '@mui/material/Tab'
import Tabs from '@mui/material/Tabs'
import Box from '@mui/material/Box'
import { useCallback, useState } from 'react'
import { useParams, useSearchParams } from 'react-router'
import type { Change } from 'verso-records/client'
import { Loading } from '../layout/loading.js'
import { Page } from '../layout/page.js'
import { useModel } from '../service/models.js'
import { getRecordName, shortenName, type ModelInfo } from '../service/model-info.js'
import { buildDeletedPath, buildRecordPath } from '../service/paths.js'
import { useTexts } from '../texts/texts.js'
import { nameAuthor } from '../texts/author-name.js'
import { BackLink } from '../layout/back-link.js'
import { CompareView } from './compare-view.js'
import { MomentView } from './moment-view.js'
import { RelativeTime } from '../texts/relative-time.js'
import { restoreRecord, restoreVersion } from './restore.js'
import { Timeline } from './timeline.js'
import { useHistory, type RecordHistory } from './use-history.js'
import { useCurrentRecord, useRecordAt } from './use-record-at.js'
import { VersionFailure } from './version-failure.js'

type View = 'timeline' | 'compare' | 'moment'

export function HistoryPage() {
  const { model: name = '', id: idText = '' } = useParams()
  const id = Number(idText)
  // Another record starts with a page of its own.
  return <RecordHistoryPage key={`${name} ${id}`} name={name} id={id} />
}

function RecordHistoryPage({ name, id }: { readonly name: string; readonly id: number }) {
  const { history: texts } = useTexts()
  const history = useHistory(name, id)
  const { data: model, error: modelError } = useModel(name)
  const newest = history.changes[0]
  const { current, recordName } = useRecord(history, model)
  const error = history.error ?? modelError
  const isDeleted = newest?.action === 'delete'
  const title = model?.title ?? shortenName(name)
  const above = isDeleted ? (
    <BackLink to={buildDeletedPath(name)} text={texts.deletedOf(title)} />
  ) : (
    <BackLink to={buildRecordPath(name, id)} text={texts.back} />
  )
  return (
    <Page title={texts.title(recordName)} above={above} isNarrow>
      {error && <VersionFailure error={error} />}
      {!error && (history.isLoading || !model) && <Loading />}
      {model && newest && (
        <Views history={history} model={model} newest={newest} current={current} recordName={recordName} />
      )}
    </Page>
  )
}

type PlainRecord = Readonly<Record<string, unknown>>

/** The name of a deleted record is that of its last version: a computed name is not in the change log. */
function useRecord({ model: name, id, changes }: RecordHistory, model: ModelInfo | undefined) {
  const newest = changes[0]
  const isDeleted = newest?.action === 'delete'
  const { data } = useCurrentRecord(name, id, newest === undefined || isDeleted)
  const { data: last } = useRecordAt(name, id, isDeleted ? newest.version - 1 : undefined)
  const current = isDeleted ? undefined : data
  return { current, recordName: getRecordName(current ?? last ?? { id }, model?.nameField) }
}

interface ViewsProps {
  readonly history: RecordHistory
  readonly model: ModelInfo
  readonly newest: Change
  readonly current: PlainRecord | undefined
  readonly recordName: string
}

function Views({ history, model, newest, current, recordName }: ViewsProps) {
  const { history: texts } = useTexts()
  const { view, versions, open } = useView()
  const { isBusy, restore } = useRestore({ history, model, newest, recordName })
  const isDeleted = newest.action === 'delete'
  const mayRestore = isDeleted ? model.permissions.create : model.permissions.write
  const onRestore = mayRestore ? (version: number) => void restore(version) : undefined
  const choose = useCallback((version: number) => open('moment', { version }), [open])
  const actions = {
    onRestore,
    onLook: choose,
    onCompare: ({ version }: Change) =>
      open('compare', { older: findPrevious(history, version), newer: version }),
  }
  return (
    <>
      {isDeleted && (
        <DeletedNotice
          newest={newest}
          isBusy={isBusy}
          onRestore={mayRestore ? () => void restore() : undefined}
        />
      )}
      <Tabs value={view} onChange={(_, next: View) => open(next, {})} aria-label={texts.views} sx={{ mb: 2 }}>
        {(['timeline', 'compare', 'moment'] as const).map((each) => (
          <Tab
            key={each}
            value={each}
            label={texts[each]}
            id={`history-tab-${each}`}
            aria-controls="history-view"
          />
        ))}
      </Tabs>
      <Box role="tabpanel" id="history-view" aria-labelledby={`history-tab-${view}`}>
        {view === 'timeline' && (
          <Timeline history={history} model={model} isBusy={isBusy} actions={actions} />
        )}
        {view === 'compare' && (
          <CompareView
            history={history}
            model={model}
            versions={versions}
            onChoose={(chosen) => open('compare', { ...chosen })}
          />
        )}
        {view === 'moment' && (
          <MomentView
            history={history}
            model={model}
            current={current}
            version={versions.version}
            onChoose={choose}
            onRestore={onRestore}
            isBusy={isBusy}
          />
        )}
      </Box>
    </>
  )
}

/** The change before may be far away: then its version is one less. */
function findPrevious({ changes }: RecordHistory, version: number): number {
  const index = changes.findIndex((change) => change.version === version)
  return changes[index + 1]?.version ?? version - 1
}

interface DeletedNoticeProps {
  readonly newest: Change
  readonly isBusy: boolean
  readonly onRestore: (() => void) | undefined
}

function DeletedNotice({ newest, isBusy, onRestore }: DeletedNoticeProps) {
  const { history } = useTexts()
  return (
    <Alert
      severity="warning"
      sx={{ mb: 2 }}
      action={
        onRestore && (
          <Button color="inherit" disabled={isBusy} onClick={onRestore}>
            {history.restore}
          </Button>
        )
      }
    >
      {history.isDeleted(nameAuthor(newest.by))}, <RelativeTime on={newest.on} />
    </Alert>
  )
}

type Numbers = Readonly<Record<string, number | undefined>>

const OWN_PARAMETERS: readonly string[] = ['view', 'version', 'older', 'newer']

/** The address holds the view, so that it can be shared and the Back button works. */
function useView() {
  const [parameters, setParameters] = useSearchParams()
  const wanted = parameters.get('view')
  const view: View = wanted === 'compare' || wanted === 'moment' ? wanted : 'timeline'
  const read = (key: string) =>
    /^\d+$/.test(parameters.get(key) ?? '') ? Number(parameters.get(key)) : undefined
  const open = useCallback(
    (next: View, numbers: Numbers) => {
      const change = (before: URLSearchParams) => {
        const after = new URLSearchParams(before)
        for (const key of OWN_PARAMETERS) after.delete(key)
        if (next !== 'timeline') after.set('view', next)
        for (const [key, value] of Object.entries(numbers))
          if (value !== undefined) after.set(key, String(value))
        return after
      }
      // Back leads to the view before, not through all positions of the slider.
      setParameters(change, { replace: next === view })
    },
    [setParameters, view],
  )
  return { view, versions: { version: read('version'), older: read('older'), newer: read('newer') }, open }
}

interface RestoreProps {
  readonly history: RecordHistory
  readonly model: ModelInfo
  readonly newest: Change
  readonly recordName: string
}

/** Without a version, restores the last one of a deleted record. */
function useRestore({ history, model, newest, recordName }: RestoreProps) {
  const [isBusy, setBusy] = useState(false)
  const restore = async (version?: number) => {
    setBusy(true)
    const target = { model, id: history.id, name: recordName, newest }
    await (version === undefined ? restoreRecord(target) : restoreVersion(target, version))
    setBusy(false)
  }
  return { isBusy, restore }
}
