import {
  approveCluster,
  deleteCluster,
  getCluster,
  issueEnrollmentToken,
  labelClusters,
  listClusters,
  listLabels,
  listNodes,
  moveClusters,
  registerCluster,
  updateCluster,
} from '@platform/contract/cluster'
import { resolveTarget } from '@platform/contract/target'
import { createEnrollmentKey, deleteEnrollmentKey, listEnrollmentKeys } from '@platform/contract/enrollment-key'
import {
  cancelRelayUpdate,
  createRelayUpdate,
  getRelayUpdate,
  listRelayUpdateClusters,
  listRelayUpdates,
} from '@platform/contract/relay-update'
import { getClusterTimeline } from '@platform/contract/timeline'
import * as Cluster from '@platform/core/clusters/cluster'
import { removeCluster } from '@platform/core/jobs/remove-cluster'
import { withSavedFilter } from '@platform/core/clusters/apply-saved-filter'
import { approve } from '@platform/core/relays/approve'
import * as Enrollment from '@platform/core/relays/enrollment'
import * as EnrollmentKey from '@platform/core/relays/enrollment-key'
import * as RelayUpdate from '@platform/core/relays/update'
import * as Select from '@platform/core/clusters/select'
import * as NodeList from '@platform/core/clusters/node-list'
import * as LastJob from '@platform/core/jobs/last-job'
import * as Timeline from '@platform/core/jobs/cluster-timeline'
import * as Bulk from '@platform/core/clusters/bulk'
import * as Target from '@platform/core/clusters/target'
import { result } from '@platform/http/result'
import { route } from '@platform/http/route'
import { serve } from '@platform/http/serve'

export const handler = serve(
  route(listClusters, async ({ caller, query }) =>
    result(200, await LastJob.listClusters(caller, await withSavedFilter(caller, query))),
  ),
  route(registerCluster, async ({ caller, body }) => result(201, await Cluster.register(caller, body))),
  route(listLabels, async ({ caller, query }) => result(200, await Select.listLabels(caller, query))),
  route(labelClusters, async ({ caller, body }) => result(200, await Bulk.labelClusters(caller, body))),
  route(moveClusters, async ({ caller, body }) => result(200, await Bulk.moveClusters(caller, body))),
  route(resolveTarget, async ({ caller, body }) => result(200, await Target.resolve(caller, body))),
  route(listNodes, async ({ caller, query }) => result(200, await NodeList.listNodes(caller, query))),
  route(getCluster, async ({ caller, params }) => result(200, await Cluster.read(caller, params.id))),
  route(updateCluster, async ({ caller, params, body }) => result(200, await Cluster.update(caller, params.id, body))),
  route(deleteCluster, async ({ caller, params }) => {
    await removeCluster(caller, params.id)
    return result(204)
  }),
  route(issueEnrollmentToken, async ({ caller, params }) => result(201, await Enrollment.issue(caller, params.id))),
  route(approveCluster, async ({ caller, params }) => {
    await approve(caller, params.id)
    return result(204)
  }),
  route(listEnrollmentKeys, async ({ caller, query }) => result(200, await EnrollmentKey.list(caller, query))),
  route(createEnrollmentKey, async ({ caller, body }) => result(201, await EnrollmentKey.create(caller, body))),
  route(deleteEnrollmentKey, async ({ caller, params }) => {
    await EnrollmentKey.revoke(caller, params.id)
    return result(204)
  }),
  route(listRelayUpdates, async ({ caller, query }) => result(200, await RelayUpdate.list(caller, query))),
  route(createRelayUpdate, async ({ caller, body }) => result(201, await RelayUpdate.create(caller, body))),
  route(getRelayUpdate, async ({ caller, params }) => result(200, await RelayUpdate.read(caller, params.id))),
  route(listRelayUpdateClusters, async ({ caller, params, query }) =>
    result(200, await RelayUpdate.listClusters(caller, params.id, query)),
  ),
  route(cancelRelayUpdate, async ({ caller, params }) => result(200, await RelayUpdate.cancel(caller, params.id))),
  route(getClusterTimeline, async ({ caller, params, query }) =>
    result(200, await Timeline.read(caller, params.id, query)),
  ),
)
