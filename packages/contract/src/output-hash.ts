import { createHash, type Hash } from 'node:crypto'

const sha256 = (text: string): string => createHash('sha256').update(text).digest('hex')

/**
 * Computes the `outputSha256` of a job. The order in which the output of different nodes and streams arrives differs
 * from run to run, so it does not change the hash.
 */
export class OutputHash {
  readonly #streams = new Map<string, Hash>()

  append(nodeId: string, stream: string, bytes: Uint8Array): void {
    if (bytes.length === 0) return
    const key = `${stream} ${nodeId}`
    const hash = this.#streams.get(key) ?? createHash('sha256')
    this.#streams.set(key, hash.update(bytes))
  }

  /** Returns the hash of the output so far, in hex. */
  digest(): string {
    const sums = [...this.#streams.values()].map((hash) => hash.copy().digest('hex')).toSorted()
    if (sums.length <= 1) return sums[0] ?? sha256('')
    // The first line distinguishes the list from an output with the same lines.
    return sha256(['streams', ...sums].map((line) => `${line}\n`).join(''))
  }
}
