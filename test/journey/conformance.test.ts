import { expect, test } from 'vitest'
import { PlatformProcess } from '../support/platform.ts'

const failing = (output: string): string[] => output.match(/^ *✖ (?!failing tests).*$/gm) ?? []
const details = (output: string): string => output.slice(output.indexOf('failing tests'))

test('the conformance suite passes on a platform that is not set up, and again on the same one, twice at once', async () => {
  await using platform = await PlatformProcess.start()
  const run = () =>
    platform.command(`npm run -s conformance -- --base-url ${platform.url}`).catch(({ stdout }) => stdout)
  for (const output of [await run(), ...(await Promise.all([run(), run()]))]) {
    expect(failing(output), details(output)).toEqual([])
    expect(output).toMatch(/^ℹ pass [1-9]/m)
  }
}, 240_000)
