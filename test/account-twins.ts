// A gate that works rights out once: it never hears that they have changed.
import type { Actor } from '../src/service/actor.js'
import type { Caller } from '../src/service/caller.js'
import { Gate } from '../src/service/gate.js'

export class DeafGate extends Gate {
  override async callerOf(actor: Actor): Promise<Caller> {
    return super.callerOf(actor, 1)
  }
}
