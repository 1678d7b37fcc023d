import { expect, test } from 'vitest'
import { type Graph, graphOf } from '../simulator/graph/graph.ts'
import { byText, dev } from './stages.ts'

/** Without the letters that the deployer puts behind a few names; it keeps those that it has made once. */
const withoutSuffixes = (text: string) => text.replaceAll(/(platform-dev-(?:Api|ApiApi|TableTable))-[a-z]{8}\b/g, '$1')

/** All that a graph asks for, in an order of its own. */
const toldBy = ({ resources, outputs }: Graph): unknown => {
  const inOrder = resources.toSorted((one, other) => byText([one.type, one.name], [other.type, other.name]))
  return JSON.parse(withoutSuffixes(JSON.stringify([inOrder, outputs])))
}

test('a second look at the same configuration asks for the same, so that deploying twice changes nothing', async () => {
  expect(toldBy(await graphOf('dev'))).toEqual(toldBy(dev))
})
