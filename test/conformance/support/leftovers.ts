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

  /** Removes everything, the newest first; answers how much that was. Users are the last: others are removed in their name. */
  async remove(): Promise<number> {
    await inLanes(this.#started, ({ client, path }) => client.post(`${path}/cancel`))
    const made = this.#made.toReversed()
    await inLanes(
      made.filter((each) => !isUser(each)),
      removed,
    )
    for (const each of made.filter(isUser)) await removed(each)
    return this.#made.length
  }
}

const isUser = ({ path }: { path: string }): boolean => path.startsWith('/api/v1/users/')

/** A job that a failed journey has left running ends a minute after it was cancelled. */
const removed = ({ client, path }: { client: Client; path: string }): Promise<unknown> =>
  until(`${path} is removed`, async () => [204, 404].includes((await client.delete(path)).status), 200)

const lanes = 6

/** Does some work for each item, some of them at once, begun in their order. */
async function inLanes<Item>(items: readonly Item[], work: (item: Item) => Promise<unknown>): Promise<void> {
  const left = items.values()
  const lane = async () => {
    for (const item of left) await work(item)
  }
  await Promise.all(Array.from({ length: lanes }, lane))
}
