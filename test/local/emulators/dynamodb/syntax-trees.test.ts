import { createRequire } from 'node:module'
import { keepTrees } from '@platform/local/emulators/dynamodb/syntax-trees'
import { expect, test } from 'vitest'

const require = createRequire(import.meta.url)

/** Returns a parser of dynalite that no other module has changed. */
function loadParser(name: string): any {
  const path = require.resolve(`dynalite/db/${name}Parser`)
  const loaded = require.cache[path]
  delete require.cache[path]
  const parser = require(path)
  if (loaded !== undefined) require.cache[path] = loaded
  return parser
}

const parsers: Record<string, any> = Object.fromEntries(
  ['condition', 'update', 'projection'].map((name) => {
    const [original, keeping] = [loadParser(name), loadParser(name)]
    keepTrees(keeping)
    return [name, { original, keeping }]
  }),
)

const compare = () => true
const isReserved = (name: string) => name === 'status'

function parseWith({ parse }: any, text: string, names: Record<string, string>, values: object) {
  const unused = (of: object) => Object.fromEntries(Object.keys(of).map((key) => [key, true]))
  const context = { unusedAttrNames: unused(names), unusedAttrVals: unused(values) }
  const tree = parse(text, { context: { ...context, attrNames: names, attrVals: values, isReserved, compare } })
  return { tree, ...context }
}

const text = (S: string) => ({ S })
const number = (N: string) => ({ N })
const set = (...SS: string[]) => ({ SS })
const [a, b] = [
  { '#a': 'one', '#b': 'two' },
  { '#a': 'three', '#b': 'four' },
]

test.each([
  ['condition', '#a = :v AND attribute_not_exists(#b)', [a, { ':v': text('x') }], [b, { ':v': text('y') }]],
  ['condition', '#a = :v AND attribute_not_exists(#b)', [a, { ':v': text('x') }], [a, { ':v': number('1') }]],
  [
    'condition',
    'size(#a) < :v OR #b IN (:v, :w)',
    [a, { ':v': number('1'), ':w': number('2') }],
    [a, { ':v': number('3'), ':w': number('4') }],
  ],
  ['condition', 'begins_with(#a, :v)', [a, { ':v': text('x') }], [a, { ':v': number('1') }]],
  ['condition', 'begins_with(#a, :v)', [a, { ':v': number('1') }], [a, { ':v': text('x') }]],
  [
    'condition',
    'contains(#a, :v) AND #a <> #b',
    [a, { ':v': text('x') }],
    [{ '#a': 'one', '#b': 'one' }, { ':v': text('x') }],
  ],
  ['condition', 'attribute_type(#a, :v)', [a, { ':v': text('S') }], [a, { ':v': text('none') }]],
  ['condition', '#a = :v', [a, { ':v': text('x') }], [a, {}]],
  ['condition', '#a = :v AND #b = :w', [a, { ':v': text('x'), ':w': text('x') }], [a, { ':v': text('x') }]],
  [
    'update',
    'SET #a = :v, #b = if_not_exists(#b, :w) + :v',
    [a, { ':v': number('1'), ':w': number('2') }],
    [b, { ':v': number('3'), ':w': number('4') }],
  ],
  [
    'update',
    'ADD #a :v DELETE #b :w',
    [a, { ':v': number('1'), ':w': set('x') }],
    [a, { ':v': set('y'), ':w': set('z') }],
  ],
  [
    'update',
    'ADD #a :v DELETE #b :w',
    [a, { ':v': number('1'), ':w': set('x') }],
    [a, { ':v': text('y'), ':w': set('z') }],
  ],
  ['update', 'SET #a.#b[2] = :v REMOVE other', [a, { ':v': text('x') }], [b, { ':v': { L: [text('y')] } }]],
  ['update', 'SET #a = :v, #b = :v', [a, { ':v': text('x') }], [{ '#a': 'one', '#b': 'one' }, { ':v': text('x') }]],
  ['projection', '#a, #b.other', [a, {}], [b, {}]],
  ['projection', '#a, #b.other', [a, {}], [{ '#a': 'one' }, {}]],
] as [string, string, [Record<string, string>, object], [Record<string, string>, object]][])(
  'a kept tree of the %s %s equals a new one',
  (name, expression, ...uses) => {
    const { original, keeping } = parsers[name]
    for (const [names, values] of [...uses, ...uses]) {
      const parsed = parseWith(keeping, expression, names, values)
      expect(parsed).toEqual(parseWith(original, expression, names, values))
    }
  },
)

test('values that are one object are not confused', () => {
  const { original, keeping } = parsers['update']
  const shared = text('x')
  for (const values of [
    { ':v': shared, ':w': shared },
    { ':v': text('y'), ':w': text('z') },
  ]) {
    const parsed = parseWith(keeping, 'SET #a = :v, #b = :w', a, values)
    expect(parsed).toEqual(parseWith(original, 'SET #a = :v, #b = :w', a, values))
  }
})

test('a change of a tree does not affect later ones', () => {
  const { keeping } = parsers['condition']
  const parse = () => parseWith(keeping, '#a = :v', a, { ':v': text('x') }).tree
  const first = structuredClone(parse())
  for (let count = 0; count < 2; count++) parse().expression.args.length = 0
  expect(parse()).toEqual(first)
})

test.each(['#a =', '(#a = :v)', 'status = :v'])('an invalid expression %s is rejected every time', (expression) => {
  const { original, keeping } = parsers['condition']
  const outcome = (parser: any) => {
    try {
      return parseWith(parser, expression, a, { ':v': text('x') }).tree
    } catch (error) {
      return String(error)
    }
  }
  for (let count = 0; count < 2; count++) expect(outcome(keeping)).toEqual(outcome(original))
})
