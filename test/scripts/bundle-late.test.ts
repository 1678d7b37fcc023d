import { expect, test } from 'vitest'
import { bundle } from '../../scripts/bundle.ts'

test.each([
  ['auth', /\/ldapts\/|ldap-|external-user|identity-(?:row|provider)\.ts|contract\/src\/setup/],
  ['identity', /\/(?:ldapts|openid-client|oauth4webapi)\//],
  ['modules', /\/tar-stream\/|icons\.ts|packages\/registry\/src\/(?:client|layer)\.ts/],
  ['queue/updates', /\/tar-stream\/|\/client-(?:lambda|ecr)\/|icons\.ts|packages\/updates\/src\/(?!operation)/],
  ['schedule/heartbeat', /\/client-(?:lambda|ecr)\/|packages\/modules\/src\/runtime\/(?:lambda|hosted)/],
])('%s loads what only some of its work needs when that comes', async (name, rare) => {
  const { sources, files, initial } = await bundle(name)
  expect(sources.size).toBeGreaterThan(100)
  const held = [...sources].filter(([path, bytes]) => bytes > 0 && rare.test(path))
  expect(held.map(([path]) => path)).toEqual([])
  expect(files.size).toBeGreaterThan(initial.length)
})
