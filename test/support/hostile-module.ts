import { randomUUID } from 'node:crypto'
import { once } from 'node:events'
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { buffer } from 'node:stream/consumers'
import { shiftClock } from '@platform/core/clock'
import { transact } from '@platform/core/db/transact'
import { type Deployment } from '@platform/core/modules/record'
import { reserveRoutesWrite, type RouteReservation, readRoutes } from '@platform/core/modules/routes'
import { errorCodeOf } from './fixtures.ts'

/** A module's instance on a socket of its own, that answers what a test says and remembers what it was asked. */

export type Respond = (request: IncomingMessage, response: ServerResponse) => void

interface ReceivedRequest {
  method: string
  url: string
  headers: Record<string, unknown>
  body: Buffer
}

export interface Instance extends AsyncDisposable {
  moduleId: string
  /** The path that it has claimed. */
  api: string
  deployment: Deployment
  /** The requests that have reached it. */
  requests: ReceivedRequest[]
  /** What it answers from now on. */
  respondWith: (respond: Respond) => void
  /** Lets go of those whom it has not answered. */
  closeConnections: () => void
  /** Ends it; its claim stays. */
  end: () => Promise<void>
}

/** Nobody else's name. */
export const newModuleId = (): string => `m${randomUUID().slice(0, 8)}`

const ok: Respond = (_request, response) => void response.writeHead(200, { 'content-type': 'text/plain' }).end('ok')

/** Sets a claim, or drops it. Another test may have changed the claims meanwhile. */
export async function reserveRoutes(moduleId: string, wanted: RouteReservation | undefined): Promise<void> {
  const set = async () => {
    const refused = await transact([reserveRoutesWrite(await readRoutes(), moduleId, wanted)])
    if (refused !== undefined) throw new Error('The claims have changed.')
  }
  while ((await errorCodeOf(set())) !== 'no error');
}

/** An instance that serves under a path of its own. `isClaimed: false`: nobody knows of it yet. */
export async function runInstance(
  respond = ok,
  { moduleId = newModuleId(), isClaimed = true } = {},
): Promise<Instance> {
  const folder = await mkdtemp(join(tmpdir(), 'm-'))
  const requests: ReceivedRequest[] = []
  let answer = respond
  const server = createServer((request, response) => {
    void buffer(request).then((body) => {
      const { method = '', url = '', headers } = request
      requests.push({ method, url, headers, body })
      return answer(request, response)
    })
  })
  const handle = join(folder, 's')
  server.listen(handle)
  await once(server, 'listening')
  const id = `${moduleId}-${randomUUID().slice(0, 8)}`
  const deployment: Deployment = {
    runtime: 'process',
    isolation: 'none',
    id,
    moduleId,
    version: '1.0.0',
    digest: `sha256:${'0'.repeat(64)}`,
    handle,
  }
  const api = `/api/${moduleId}`
  if (isClaimed) await reserveRoutes(moduleId, { apiBasePath: api, deployment })
  // By then everybody has heard of it.
  shiftClock(1000)
  const end = async () => {
    if (!server.listening) return
    server.close()
    server.closeAllConnections()
    await once(server, 'close')
  }
  const dispose = async () => {
    await end()
    await rm(folder, { recursive: true, force: true })
  }
  return {
    moduleId,
    api,
    deployment,
    requests,
    respondWith: (next) => (answer = next),
    closeConnections: () => server.closeAllConnections(),
    end,
    [Symbol.asyncDispose]: dispose,
  }
}
