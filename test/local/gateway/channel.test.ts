import { startBroker } from '@platform/local/emulators/iot/broker'
import { createRouter } from '@platform/local/gateway/routes'
import { listen } from '@platform/local/gateway/server'
import { expect, test } from 'vitest'
import { openMqtt } from '../../support/mqtt-client.ts'
import { errorOf, privateMetrics, sampleRoutes, sendBytes } from './support.ts'

const upgrade = (path: string, headers = '') =>
  [
    `GET ${path} HTTP/1.1`,
    'Host: localhost',
    'Connection: upgrade',
    'Upgrade: websocket',
    'Sec-WebSocket-Version: 13',
    'Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==',
    `${headers}\r\n\r\n`,
  ].join('\r\n')

test('the path of the channel is upgraded, and no other', async () => {
  const gateway = await listen('127.0.0.1', 0)
  expect(errorOf(await sendBytes(gateway.url, upgrade('/channel')))).toMatchObject({ status: 503, error: 'starting' })
  const broker = startBroker({
    authorize: async () => ({ isAuthenticated: false }),
    onPresence: () => undefined,
    log: () => undefined,
    limits: { maxUnauthenticatedPerNetwork: 1 },
  })
  const context = { route: createRouter(sampleRoutes, 'none'), log: () => undefined }
  const invoke = async () => ({ statusCode: 200, headers: { connection: 'close' } })
  gateway.open({ ...context, metrics: privateMetrics, invoke, channel: broker.accept })
  using client = await openMqtt(`${gateway.url.replace('http', 'ws')}/channel?a=b`)
  const busy = upgrade('/channel', 'Sec-WebSocket-Protocol: mqtt')
  expect(errorOf(await sendBytes(gateway.url, busy))).toMatchObject({ status: 503, error: 'overloaded' })
  expect(await client.connect('one')).toBe(5)
  await client.closed
  for (const protocol of ['Sec-WebSocket-Protocol: other', 'X: y'])
    expect(await sendBytes(gateway.url, upgrade('/channel', protocol))).toMatch(/^HTTP\/1.1 400 /)
  for (const path of ['/channel/', '/channels', '/things']) {
    const response = await sendBytes(gateway.url, upgrade(path).replace('upgrade\r\n', 'close, upgrade\r\n'))
    expect(response).toMatch(/^HTTP\/1.1 200 /)
  }
  await gateway.drain(0)
})
