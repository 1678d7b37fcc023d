import { expect, test } from 'vitest'
import { type Graph, graphOf } from '../simulator/graph/graph.ts'
import { byText, dev } from './stages.ts'

/** SST appends random letters to a few names. */
const withoutSuffixes = (text: string) => text.replaceAll(/(platform-dev-(?:Api|ApiApi|TableTable))-[a-z]{8}\b/g, '$1')

const toldBy = ({ resources, outputs }: Graph): unknown => {
  const inOrder = resources.toSorted((one, other) => byText([one.type, one.name], [other.type, other.name]))
  return JSON.parse(withoutSuffixes(JSON.stringify([inOrder, outputs])))
}

test('evaluating the configuration twice gives the same resources', async () => {
  expect(toldBy(await graphOf('dev'))).toEqual(toldBy(dev))
})
