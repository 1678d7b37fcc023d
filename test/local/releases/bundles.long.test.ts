import { join } from 'node:path'
import { version as checkoutVersion } from '@platform/core/lib/version'
import { startPlatform } from '@platform/local/platform'
import { parseSettings } from '@platform/local/settings'
import { expect, test } from 'vitest'
import { packedFunctions } from '../../support/build-cache.ts'
import { temporaryFolder } from '../../support/temporary-folder.ts'
import { hammer } from './clients.ts'
import { named, stagedOf, targetOf } from './support.ts'

/** What functions of several kinds answer: with the store, without it, and out of their built files. */
const paths = [
  '/health/ready',
  '/api/v1/setup/status',
  '/relay/relay.mjs',
  '/docs',
  '/',
  '/api/v1/openapi.json',
  '/schemas/module/v1.json',
  '/.well-known/jwks.json',
]

// By default the journey of an update is the one that does so.
test(
  'the platform’s own functions take over as they are shipped, and give back, without a failed request',
  { timeout: 300_000 },
  async () => {
    await using folder = await temporaryFolder()
    const release = stagedOf('99.0.0', await packedFunctions('99.0.0'))
    const environment = { PLAT_PORT: '0', PLAT_DATA_DIR: join(folder.path, 'data'), PLAT_LOG_LEVEL: 'warn' }
    const settings = parseSettings({ ...environment, PLAT_REGISTRY_PORT: '0' })
    let platform = await startPlatform(settings)
    await using _ = { [Symbol.asyncDispose]: () => platform.stop() }
    const target = targetOf(platform)
    const answers = () =>
      Promise.all(
        paths.map(async (path) => {
          const response = await fetch(`${platform.url}${path}`)
          return { status: response.status, text: path === '/health/ready' ? '' : await response.text() }
        }),
      )
    const before = await target.current()
    expect(before).toEqual({ version: checkoutVersion })
    const own = await answers()
    expect(own.map(({ status }) => status)).toEqual(paths.map(() => 200))

    const clients = hammer(platform.url, 10, [
      '/health/live',
      '/docs',
      '/',
      '/relay/relay.mjs',
      '/.well-known/jwks.json',
    ])
    await target.stage(release)
    for (const name of release.functionNames) {
      expect(await target.invoke(named(release), name, { platformProbe: true })).toEqual({ version: '99.0.0' })
    }
    for (const share of [10, 50, 100] as const) {
      await target.shift(named(release), share)
      await clients.more(100)
    }
    await target.commit(named(release), before)
    expect(await target.current()).toEqual(named(release))
    expect(await answers()).toEqual(own)

    await target.stage({ ...before, functionNames: [], fetchFunction: () => Promise.reject(new Error('nowhere')) })
    await target.shift(before, 100)
    await target.commit(before, named(release))
    await clients.more(100)
    await clients.stop()
    expect(await answers()).toEqual(own)
    expect(clients.failures).toEqual([])

    // And from the start on, with nothing of the checkout but what runs them.
    await target.stage(release)
    await target.commit(named(release), before)
    await platform.stop()
    platform = await startPlatform(settings)
    expect(await targetOf(platform).current()).toEqual(named(release))
    expect(await answers()).toEqual(own)
  },
)
