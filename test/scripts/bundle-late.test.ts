import { expect, test } from 'vitest'
import { bundle } from '../../scripts/bundle.ts'

test('a function that signs people in evaluates no client of directories until somebody needs one', async () => {
  const { metafile } = await bundle('auth')
  const reached = new Set<string>()
  const visit = (path: string): void => {
    if (reached.has(path)) return
    reached.add(path)
    for (const { kind, path: next } of metafile.inputs[path]?.imports ?? []) {
      if (kind !== 'dynamic-import') visit(next)
    }
  }
  visit('functions/auth.ts')
  expect(reached.size).toBeGreaterThan(100)
  expect(
    [...reached].filter((path) => /ldap|external-user|identity-(?:row|provider)|contract\/src\/setup/.test(path)),
  ).toEqual([])
  expect(Object.keys(metafile.inputs).some((path) => path.includes('node_modules/ldapts/'))).toBe(true)
})
