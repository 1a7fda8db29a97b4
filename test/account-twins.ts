// Broken twins of what guards accounts.
import type { Actor } from '../src/service/actor.js'
import type { Caller } from '../src/service/caller.js'
import { Gate } from '../src/service/gate.js'
import type { Database } from '../src/store/database.js'
import { EPOCH_TABLE } from '../src/store/epoch.js'

/** Works rights out once, and never hears that they have changed. */
export class DeafGate extends Gate {
  override async callerOf(actor: Actor): Promise<Caller> {
    return super.callerOf(actor, 1)
  }
}

/** Transactions that change rights no longer take turns: the number that makes them wait for each other is left alone. */
export function withoutTurns(db: Database): Database {
  return {
    ...{ dialect: db.dialect, reader: db.reader, searcher: db.searcher, contents: db.contents },
    close: () => db.close(),
    transaction: (work, options) =>
      db.transaction(
        (tx) =>
          work({
            all: (sql, params) => tx.all(sql, params),
            insert: (sql, params) => tx.insert(sql, params),
            run: async (sql, params) =>
              sql.startsWith(`insert into ${EPOCH_TABLE}`) ? 1 : tx.run(sql, params),
          }),
        options,
      ),
  }
}
