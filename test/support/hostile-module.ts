import { randomUUID } from 'node:crypto'
import { once } from 'node:events'
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import { join } from 'node:path'
import { buffer } from 'node:stream/consumers'
import { permissionsOf } from '@platform/contract/permission'
import { shiftClock } from '@platform/core/clock'
import { transact } from '@platform/core/db/transact'
import type { Deployment } from '@platform/core/modules/deployment'
import { reserveRoutesWrite, type RouteReservation, readRoutes } from '@platform/core/modules/routes'
import { errorCodeOf } from './fixtures.ts'
import { temporaryFolder } from './temporary-folder.ts'

export type Respond = (request: IncomingMessage, response: ServerResponse) => void

export const newModuleId = (): string => `m${randomUUID().slice(0, 8)}`

const ok: Respond = (_request, response) => void response.writeHead(200, { 'content-type': 'text/plain' }).end('ok')

/** Retries, because other tests change routes concurrently. */
export async function reserveRoutes(moduleId: string, reservation: RouteReservation | undefined): Promise<void> {
  const set = async () => {
    const rejection = await transact([reserveRoutesWrite(await readRoutes(), moduleId, reservation)])
    if (rejection !== undefined) throw new Error('The reservations have changed.')
  }
  while ((await errorCodeOf(set())) !== 'no error');
}

export async function runInstance(
  respond = ok,
  { moduleId = newModuleId(), hasRoute = true, permissions = permissionsOf(['Operator']) } = {},
) {
  const folder = await temporaryFolder()
  const requests: { method: string; url: string; headers: Record<string, unknown>; body: Buffer }[] = []
  const server = createServer((request, response) => {
    void buffer(request).then((body) => {
      const { method = '', url = '', headers } = request
      requests.push({ method, url, headers, body })
      return respond(request, response)
    })
  })
  const handle = join(folder.path, 's')
  await once(server.listen(handle), 'listening')
  const deployment: Deployment = {
    runtime: 'process',
    isolation: 'none',
    id: `${moduleId}-${randomUUID().slice(0, 8)}`,
    moduleId,
    version: '1.0.0',
    digest: `sha256:${'0'.repeat(64)}`,
    handle,
  }
  const api = `/api/${moduleId}`
  if (hasRoute) await reserveRoutes(moduleId, { apiBasePath: api, deployment, permissions })
  shiftClock(1000)
  const end = async () => {
    if (!server.listening) return
    server.close()
    server.closeAllConnections()
    await once(server, 'close')
  }
  return {
    moduleId,
    api,
    deployment,
    requests,
    respondWith: (next: Respond) => void (respond = next),
    closeConnections: () => server.closeAllConnections(),
    end,
    async [Symbol.asyncDispose]() {
      await end()
      await folder[Symbol.asyncDispose]()
    },
  }
}

export type Instance = Awaited<ReturnType<typeof runInstance>>
