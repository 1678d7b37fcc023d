import { startServer } from '../../support/http-server.ts'

/** Import this file before core, which reads the settings of these servers when it is imported. */

export const receiver = await startServer(() => ({ status: 204 }))
export const moduleHost = await startServer(({ method }) =>
  method === 'GET'
    ? { status: 200, headers: { 'content-type': 'application/json' }, body: '{"items":[]}' }
    : { status: 204 },
)

Object.assign(process.env, { PLAT_WEBHOOK_ALLOW: receiver.host, PLAT_MODULE_HOST_URL: moduleHost.url })
