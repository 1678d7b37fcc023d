import { version } from '@platform/contract/manifest'
import * as fc from 'fast-check'
import valid from 'semver/functions/valid.js'
import { expect, test } from 'vitest'

test('every accepted version is valid SemVer', () => {
  const number = fc.oneof(fc.nat(), fc.bigInt(0n, 10n ** 17n)).map(String)
  const suffix = fc.stringMatching(/^(-[0-9A-Za-z.-]{0,20})?(\+[0-9A-Za-z.-]{0,20})?$/)
  const property = fc.property(number, number, number, suffix, (major, minor, patch, suffix) => {
    const text = `${major}.${minor}.${patch}${suffix}`
    if (version.safeParse(text).success) expect(valid(text)).not.toBeNull()
  })
  fc.assert(property, { numRuns: 2000, seed: 42 })
  expect(version.safeParse('999999999999999.0.0-rc.1+build.5').success).toBe(true)
})
