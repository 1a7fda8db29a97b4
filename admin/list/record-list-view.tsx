// A list with all that belongs to it: search, filters, columns, selection, rows, pages.
import Box from '@mui/material/Box'
import Button from '@mui/material/Button'
import LinearProgress from '@mui/material/LinearProgress'
import useMediaQuery from '@mui/material/useMediaQuery'
import { useState } from 'react'
import { FilterIcon } from '../layout/icons.js'
import { Page } from '../layout/page.js'
import type { ModelInfo } from '../service/model-info.js'
import { useTexts } from '../texts/texts.js'
import { listPossibleColumns } from './columns.js'
import { ColumnsMenu } from './columns-menu.js'
import { ConditionBar, listFilterFields } from './condition-bar.js'
import { ConditionDialog } from './condition-dialog.js'
import { writeCondition } from './conditions.js'
import { ListActions } from './list-actions.js'
import { ListFailure, NoRecords, StatusLine } from './list-state.js'
import { Pager } from './pager.js'
import { RecordCards, SortChoice } from './record-cards.js'
import { RecordTable } from './record-table.js'
import { SearchBox } from './search-box.js'
import { useRecordList, type RecordList } from './use-record-list.js'
import { useScrollMemory } from './use-scroll-memory.js'
import { useSelection } from './use-selection.js'

const PHONE = '(max-width: 599.95px)'

export function RecordListView({ model }: { readonly model: ModelInfo }) {
  const list = useRecordList(model)
  const selection = useSelection(list.key, list.rows)
  const isPhone = useMediaQuery(PHONE)
  const { total, page, perPage, error, isPrevious, rows } = list
  useScrollMemory(model.name, !isPrevious)
  const Rows = isPhone ? RecordCards : RecordTable
  const isEmpty = !isPrevious && rows.length === 0
  return (
    <Page title={model.title} actions={<ListActions list={list} />}>
      <ListTools list={list} isPhone={isPhone} />
      <ConditionBar fields={model.fields} filters={list.filters} onChange={list.setFilters} />
      <StatusLine list={list} selection={selection} />
      <Progress isShown={list.isFetching && (isPrevious || rows.length === 0)} />
      {error && isPrevious && <ListFailure list={list} />}
      {isEmpty && !error && <NoRecords list={list} />}
      {rows.length > 0 && !(error && isPrevious) && (
        <Box aria-busy={isPrevious} sx={isPrevious ? { opacity: 0.6 } : {}}>
          <Rows list={list} selection={model.permissions.remove ? selection : undefined} />
        </Box>
      )}
      {error && !isPrevious && <ListFailure list={list} />}
      {total !== undefined && total > 0 && (
        <Pager
          total={total}
          page={page}
          perPage={perPage}
          onPage={list.setPage}
          onPerPage={list.setPerPage}
        />
      )}
    </Page>
  )
}

/** Takes the same room whether it is shown or not, so that the rows stay where they are. */
function Progress({ isShown }: { readonly isShown: boolean }) {
  const { common } = useTexts()
  return <Box sx={{ height: 4 }}>{isShown && <LinearProgress aria-label={common.loading} />}</Box>
}

function ListTools({ list, isPhone }: { readonly list: RecordList; readonly isPhone: boolean }) {
  const texts = useTexts()
  const [isAdding, setAdding] = useState(false)
  const { model, filters, setFilters } = list
  return (
    <Box role="search" sx={{ display: 'flex', flexWrap: 'wrap', alignItems: 'center', gap: 1, mb: 1.5 }}>
      <SearchBox label={texts.list.search(model.title)} words={list.words} onSearch={list.setWords} />
      <Button
        color="inherit"
        startIcon={<FilterIcon />}
        aria-haspopup="dialog"
        onClick={() => setAdding(true)}
      >
        {texts.list.filter}
      </Button>
      <ColumnsMenu possible={listPossibleColumns(model)} chosen={list.columns} onChange={list.setColumns} />
      {isPhone && <SortChoice list={list} />}
      {isAdding && (
        <ConditionDialog
          fields={listFilterFields(model.fields)}
          condition={undefined}
          onApply={(condition) => {
            setAdding(false)
            setFilters([...filters, writeCondition(condition)])
          }}
          onClose={() => setAdding(false)}
        />
      )}
    </Box>
  )
}
