import { type Expression, parseSync, Visitor } from 'oxc-parser'

const runners = new Set(['test', 'it', 'describe'])

/** `test` of `test.skipIf(x).each(y)('title')`. */
function headOf(callee: Expression): string | undefined {
  if (callee.type === 'Identifier') return callee.name
  if (callee.type === 'CallExpression') return headOf(callee.callee)
  return callee.type === 'MemberExpression' ? headOf(callee.object) : undefined
}

/** The title as written, with `…` for interpolated values. */
function textOf(argument: Expression): string | undefined {
  if (argument.type === 'Literal' && typeof argument.value === 'string') return argument.value
  if (argument.type !== 'TemplateLiteral') return undefined
  return argument.quasis
    .map(({ value }) => value.cooked ?? '')
    .join('…')
    .replace(/…$/, '')
}

export function titlesOf(path: string, text: string): Set<string> {
  const titles = new Set<string>()
  new Visitor({
    CallExpression: ({ callee, arguments: [first] }) => {
      if (first === undefined || first.type === 'SpreadElement' || !runners.has(headOf(callee) ?? '')) return
      const title = textOf(first)
      if (title !== undefined) titles.add(title)
    },
  }).visit(parseSync(path, text).program)
  return titles
}
