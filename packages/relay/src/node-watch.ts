import type { Heartbeat } from '@platform/contract/relay'
import { setTimeout as sleep } from 'node:timers/promises'
import { mapAtMost } from './each.ts'
import type { RelayNode } from './node.ts'

const checkEveryMs = 60_000
const mostChecks = 16

/** Knows which nodes are within reach, without making a heartbeat wait for the answer. */
export class NodeWatch {
  readonly #nodes: RelayNode[]
  readonly #online = new Set<string>()
  #first: Promise<void> | undefined

  constructor(nodes: RelayNode[]) {
    this.#nodes = nodes
  }

  statuses(): Heartbeat['nodes'] {
    return this.#nodes.map(({ id }) => ({ id, status: this.#online.has(id) ? 'Online' : 'Offline' }))
  }

  /** Checks every node for the first time; whoever asks again waits for the same check. */
  first(): Promise<void> {
    return (this.#first ??= this.#check())
  }

  /** Checks every node at once, and again every minute, until the signal aborts. */
  async run(signal: AbortSignal): Promise<void> {
    await this.first()
    while (!signal.aborted) {
      await sleep(checkEveryMs, undefined, { signal }).catch(() => {})
      if (!signal.aborted) await this.#check()
    }
  }

  async #check(): Promise<void> {
    await mapAtMost(mostChecks, this.#nodes, async ({ id, executor }) => {
      if (await executor.isOnline()) this.#online.add(id)
      else this.#online.delete(id)
    })
  }
}
