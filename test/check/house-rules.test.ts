import { expect, test } from 'vitest'
import { houseRuleViolations } from '../../scripts/house-rules.ts'

const violations = (path: string, text: string) => houseRuleViolations([{ path, text }])
const folder = (...names: string[]) => ['', ...names].join('/')

test.for([
  ['packages/core/src/x.ts', `export * from './y.ts'`],
  ['packages/core/src/x.ts', `export { y } from './y.ts'\nexport { z } from './z.ts'`],
  ['README.md', `Open ${folder('home', 'ada', 'platform')} and run it.`],
  ['scripts/x.ts', `const root = '${folder('work', 'main')}'`],
  ['package-lock.json', `"resolved": "https://registry.example.com/zod.tgz"`],
] as const)('%s must not hold: %s', ([path, text]) => {
  expect(violations(path, text)).toHaveLength(1)
})

test.for([
  ['packages/core/src/x.ts', `export * as Cluster from './cluster.ts'\nexport const x = 1`],
  ['packages/core/src/x.ts', `export { y } from './y.ts'\nexport const x = 1`],
  ['README.md', 'See https://example.com/home/page and packages/work/file.'],
  ['package-lock.json', `"resolved": "https://registry.npmjs.org/zod/-/zod-4.6.7.tgz"`],
] as const)('%s may hold: %s', ([path, text]) => {
  expect(violations(path, text)).toEqual([])
})
