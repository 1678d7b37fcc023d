import { outboundFetch, OutboundError } from '@platform/core/outbound/outbound'
import { privateAnswers } from '../../core/support/addresses.ts'

/** Addresses of the changing names that may be called: nobody answers there. */
export const publicOnes: ReadonlySet<string> = new Set(['1.2.3.4', '2606:4700::1111'])

/** What a name server may answer: the same each time, or something else when it is asked again. */
const changing: readonly (readonly (readonly string[])[])[] = [
  [['1.2.3.4'], ['127.0.0.1']],
  [['127.0.0.1'], ['1.2.3.4']],
  [['2606:4700::1111'], ['::1']],
]
const mixed: readonly (readonly string[])[] = [
  ['8.8.8.8', '127.0.0.1'],
  ['127.0.0.1', '8.8.8.8'],
  ['2606:4700::1111', '::1'],
  ['8.8.8.8', '::ffff:127.0.0.1'],
  ['8.8.8.8', '10.0.0.1', '1.1.1.1'],
]

/** Calls a name of which a name server says all this; answers how often it was called. */
export async function callNames(port: number): Promise<number> {
  const servers = [...privateAnswers.map((address) => [[address]]), ...mixed.map((answer) => [answer]), ...changing]
  let calls = 0
  for (const answers of servers) {
    let asked = 0
    const resolve = async (): Promise<string[]> => [...(answers[Math.min(asked++, answers.length - 1)] ?? [])]
    for (const scheme of ['http', 'https']) {
      // Once, and once more: what was believed at first is of no use then.
      for (let turn = 0; turn < 2; turn++) {
        calls++
        const request = { method: 'GET', timeoutMs: 300, maxBytes: 1000 }
        await outboundFetch(`${scheme}://rebinding.example:${port}/`, request, { allow: new Set(), resolve }).catch(
          expected,
        )
      }
    }
  }
  return calls
}

function expected(error: unknown): void {
  if (!(error instanceof OutboundError)) throw error
}
