import { startServer } from '../../support/http-server.ts'

/** Import this before anything of the platform: its settings allow these servers. */

export const receiver = await startServer(() => ({ status: 204 }))
export const moduleHost = await startServer(({ method }) =>
  method === 'GET'
    ? { status: 200, headers: { 'content-type': 'application/json' }, body: '{"items":[]}' }
    : { status: 204 },
)

Object.assign(process.env, { PLAT_WEBHOOK_ALLOW: receiver.host, PLAT_MODULE_HOST_URL: moduleHost.url })
