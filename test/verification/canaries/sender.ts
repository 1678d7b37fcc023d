import { once } from 'node:events'
import { request } from 'node:http'
import { text } from 'node:stream/consumers'
import type { Slip } from './misplaced.ts'

/** Sends a request exactly as it is written, and answers the status; 0 where nobody answers it. */
export async function sendSlip(baseUrl: string, { method, path, headers, body }: Slip): Promise<number> {
  const { hostname, port } = new URL(baseUrl)
  try {
    const onward = request({ hostname, port, method, path, ...(headers && { headers }), agent: false })
    // A connection may break after its answer, too.
    onward.on('error', () => undefined)
    onward.end(body)
    const [answer] = await once(onward, 'response')
    await text(answer)
    return answer.statusCode
  } catch {
    return 0
  }
}
