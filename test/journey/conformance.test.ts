import { expect, test } from 'vitest'
import { PlatformProcess } from '../support/platform.ts'

test('the conformance suite passes on a platform that is not set up, and again on the same one, twice at once', async () => {
  await using platform = await PlatformProcess.start()
  const conformance = () =>
    platform.command(`npm run conformance -- --base-url ${platform.url}`).catch(({ stdout }) => stdout)
  expect(await conformance()).toMatch(/^ℹ fail 0$/m)
  for (const output of await Promise.all([conformance(), conformance()])) expect(output).toMatch(/^ℹ fail 0$/m)
}, 240_000)
