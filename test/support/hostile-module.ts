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

/** A module instance with programmable responses that records its requests. */

export type Respond = (request: IncomingMessage, response: ServerResponse) => void

interface ReceivedRequest {
  method: string
  url: string
  headers: Record<string, unknown>
  body: Buffer
}

export interface Instance extends AsyncDisposable {
  moduleId: string
  /** The reserved route. */
  api: string
  deployment: Deployment
  requests: ReceivedRequest[]
  respondWith: (respond: Respond) => void
  /** Ends requests without a response. */
  closeConnections: () => void
  /** Stops the instance; its route stays reserved. */
  end: () => Promise<void>
}

export const newModuleId = (): string => `m${randomUUID().slice(0, 8)}`

const ok: Respond = (_request, response) => void response.writeHead(200, { 'content-type': 'text/plain' }).end('ok')

/** Sets or removes the route. Retries, because other tests change routes concurrently. */
export async function reserveRoutes(moduleId: string, wanted: RouteReservation | undefined): Promise<void> {
  const set = async () => {
    const refused = await transact([reserveRoutesWrite(await readRoutes(), moduleId, wanted)])
    if (refused !== undefined) throw new Error('The claims have changed.')
  }
  while ((await errorCodeOf(set())) !== 'no error');
}

/** Starts an instance; `isClaimed: false` without a reserved route. */
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
  // Wait until caches of routes expire.
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
