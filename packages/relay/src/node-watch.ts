import type { Heartbeat } from '@platform/contract/relay'
import { setTimeout as sleep } from 'node:timers/promises'
import { mapLimit } from './map-limit.ts'
import type { RelayNode } from './node.ts'

const checkIntervalMs = 60_000
const maxConcurrentChecks = 16

/** Checks regularly which nodes are reachable. */
export class NodeWatch {
  readonly #nodes: RelayNode[]
  #onlineIds = new Set<string>()
  #onReturn: (id: string) => void = () => {}

  constructor(nodes: RelayNode[]) {
    this.#nodes = nodes
  }

  statuses(): Heartbeat['nodes'] {
    return this.#nodes.map(({ id }) => ({ id, status: this.#onlineIds.has(id) ? 'Online' : 'Offline' }))
  }

  onlineIds(): string[] {
    return [...this.#onlineIds]
  }

  /** Sets the function that is called for a node that becomes reachable. */
  onReturn(call: (id: string) => void): void {
    this.#onReturn = call
  }

  async check(): Promise<void> {
    await mapLimit(maxConcurrentChecks, this.#nodes, async ({ id, executor }) => {
      const wasOnline = this.#onlineIds.has(id)
      const isOnline = await executor.isOnline()
      if (isOnline) this.#onlineIds.add(id)
      else this.#onlineIds.delete(id)
      if (isOnline && !wasOnline) this.#onReturn(id)
    })
  }

  /** Checks all nodes repeatedly, with pauses of one minute, until the signal aborts. */
  async run(signal: AbortSignal): Promise<void> {
    while (!signal.aborted) {
      await sleep(checkIntervalMs, undefined, { signal }).catch(() => {})
      if (!signal.aborted) await this.check()
    }
  }
}
