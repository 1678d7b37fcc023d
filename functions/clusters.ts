import {
  deleteCluster,
  getCluster,
  issueEnrollmentToken,
  listClusters,
  registerCluster,
  updateCluster,
} from '@platform/contract/cluster'
import * as Cluster from '@platform/core/cluster'
import * as Enrollment from '@platform/core/enrollment'
import { answer } from '@platform/http/answer'
import { route } from '@platform/http/route'
import { serve } from '@platform/http/serve'

export const handler = serve(
  route(listClusters, async ({ caller, query }) => answer(200, await Cluster.list(caller, query))),
  route(registerCluster, async ({ caller, body }) => answer(201, await Cluster.register(caller, body))),
  route(getCluster, async ({ caller, params }) => answer(200, await Cluster.read(caller, params.id))),
  route(updateCluster, async ({ caller, params, body }) => answer(200, await Cluster.update(caller, params.id, body))),
  route(deleteCluster, async ({ caller, params }) => {
    await Cluster.remove(caller, params.id)
    return answer(204)
  }),
  route(issueEnrollmentToken, async ({ caller, params }) => answer(201, await Enrollment.issue(caller, params.id))),
)
