import type { Client } from './client.ts'
import { until } from './until.ts'

/** What a run has made on a platform, to be removed when it ends. */
export class Leftovers {
  readonly #made: { client: Client; path: string }[] = []
  readonly #started: { client: Client; path: string }[] = []

  /** Remembers what `DELETE` on this path removes, in the role that may. */
  made(client: Client, path: string): void {
    this.#made.push({ client, path })
  }

  /** Remembers a job or a batch: it is cancelled before anything is removed. */
  started(client: Client, path: string): void {
    this.#started.push({ client, path })
  }

  /** Removes everything, the newest first; answers how much that was. */
  async remove(): Promise<number> {
    for (const { client, path } of this.#started) await client.post(`${path}/cancel`)
    for (const { client, path } of this.#made.toReversed()) {
      // A job that a failed journey has left running ends a minute after it was cancelled.
      await until(`${path} is removed`, async () => [204, 404].includes((await client.delete(path)).status), 200)
    }
    return this.#made.length
  }
}
