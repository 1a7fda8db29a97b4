// Finds statements that need stronger table locks than a write does.
import pg from 'pg'

/** Conflicts with itself and all stronger modes, but not with ROW EXCLUSIVE, which writes take, or weaker ones. */
const MODE = 'share update exclusive'

/** The pause between two checks, on the server: a statement waits until it is cancelled. */
const PAUSE = 'select pg_sleep(0.01)'

/** The two views are read one after the other: without the wait event, a query could be the one before that which waits. */
const WAITING = `select a.pid, a.query from pg_locks as l join pg_stat_activity as a using (pid)
  where not l.granted and l.locktype = 'relation' and a.datname = current_database()
    and a.state = 'active' and a.wait_event_type = 'Lock'`

/**
 * Runs the work while every table is locked in a mode that allows plain reads and writes. Returns the statements that had to wait; each
 * is cancelled.
 */
export async function statementsHeldUp(url: string, work: () => Promise<unknown>): Promise<string[]> {
  const [holder, observer] = [new pg.Client(url), new pg.Client(url)]
  await Promise.all([holder.connect(), observer.connect()])
  const heldUp: string[] = []
  let isOver = false
  const end = () => (isOver = true)
  try {
    await lockAll(holder)
    const working = work()
    working.then(end, end)
    const isOverNow = () => isOver
    while (!isOverNow()) {
      const { rows } = await observer.query<{ pid: number; query: string }>(WAITING)
      for (const { pid, query } of rows) {
        heldUp.push(query)
        await observer.query('select pg_cancel_backend($1)', [pid])
      }
      await observer.query(PAUSE)
    }
    // The work fails because of the cancelled statements.
    if (heldUp.length === 0) await working
    return heldUp
  } finally {
    await Promise.all([holder.end(), observer.end()])
  }
}

async function lockAll(holder: pg.Client): Promise<void> {
  const { rows } = await holder.query<{ table: string }>(
    `select format('%I.%I', schemaname, tablename) as "table" from pg_tables where schemaname = current_schema()`,
  )
  await holder.query('begin')
  await holder.query(`lock table ${rows.map(({ table }) => table).join(', ')} in ${MODE} mode`)
}
