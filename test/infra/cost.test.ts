import { expect, test } from 'vitest'
import { deploymentOf } from '../bench/cost/deployment.ts'
import { readInputs } from '../bench/cost/model.ts'
import { production } from './stages.ts'

test('the cost model counts the resources of the deployment', async () => {
  const { units } = await readInputs()
  expect(units.deployment, 'run npm run cost -- --measure').toEqual(deploymentOf(production))
})
