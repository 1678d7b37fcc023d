import { once } from 'node:events'
import { Agent, request } from 'node:http'
import type { Sent } from '../../test/support/event.ts'

/** Requests that are sent again and again, in turn, on connections that never wait between two. */
export interface Flood {
  url: string
  volleys: { connections: number; requests: Sent[] }[]
}

/** How many answers there were of each status. */
export type Answers = Record<number, number>

const answers: Answers = {}

async function fire(url: string, requests: readonly Sent[], over: AbortSignal): Promise<void> {
  const agent = new Agent({ keepAlive: true, maxSockets: 1 })
  for (let turn = 0; !over.aborted; turn++) {
    const sent = requests[turn % requests.length]
    if (sent === undefined) return
    const status = await ask(agent, url, sent).catch(() => 0)
    answers[status] = (answers[status] ?? 0) + 1
  }
  agent.destroy()
}

async function ask(agent: Agent, url: string, { target, method = 'GET', headers = {}, body = '' }: Sent) {
  const length = { 'content-length': Buffer.byteLength(body) }
  const asking = request(`${url}${target}`, { agent, method, headers: { ...headers, ...(body !== '' && length) } })
  asking.end(body)
  const [response] = await once(asking, 'response')
  response.resume()
  await once(response, 'end')
  return Number(response.statusCode)
}

process.once('message', ({ url, volleys }: Flood) => {
  const over = new AbortController()
  const fires = volleys.flatMap(({ connections, requests }) =>
    Array.from({ length: connections }, () => fire(url, requests, over.signal)),
  )
  process.once('message', () => {
    over.abort()
    void Promise.all(fires).then(() => process.send?.(answers, () => process.exit()))
  })
})
