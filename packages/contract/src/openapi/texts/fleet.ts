import type { Texts } from './text.ts'

const clusterFields = {
  name: 'Name of the cluster, unique in the organisation',
  type: ['`Hypervisor`: machines that the organisation runs. `CloudLocal`: machines of a cloud provider', 'Hypervisor'],
} as const

const nodeFields = {
  name: 'Name of the node',
  status: ['State that the relay reported last; `Unknown` while the cluster is Offline', 'Online'],
} as const

export const fleetTexts: Texts = {
  'ClusterSummary ClusterDetail RegisteredCluster': clusterFields,
  'ClusterSummary ClusterDetail': {
    status: [
      '`Healthy`: the relay and all nodes are online. `Degraded`: a node is offline or a heartbeat is overdue. `Offline`: the relay is silent or no node is online. `Pending`: no relay has enrolled yet, or the relay waits for approval',
      'Healthy',
    ],
    nodeCount: 'Number of nodes; 0 before enrollment',
    'lastJob.status': ['Status of the job', 'Completed'],
    'lastJob.title': 'The name, or else the first line of the script without comments and shell options, shortened',
    'lastJob.name': 'Name of the job or of its batch, if it has one',
  },
  ClusterDetail: {
    nodes: 'The nodes on which jobs of the cluster run',
    relay: 'The enrolled relay; null before enrollment',
  },
  RegisteredCluster: { status: 'Always `Pending` until a relay enrolls' },
  'RegisteredCluster Enrollment': {
    enrollmentToken: [undefined, 'X5b0pJ3m7uKQ2vTn9rYs1dEwZ8cLhGfA4iOoVxM6kNt'],
  },
  ClusterRegistration: { type: clusterFields.type, siteId: 'Site that the cluster belongs to; default: none' },
  listClusters: {
    status: 'Only clusters with this status',
    type: 'Only clusters of this type',
  },
  LabelList: { items: 'Label keys, the most frequent first' },
  LabelSummary: {
    key: 'Key of the label',
    values: 'Values of the key, the most frequent first',
    'values.value': 'Value of the label',
  },
  ResolvedTarget: {
    'byStatus.Healthy': ['Clusters that are Healthy', 240],
    'byStatus.Degraded': ['Clusters that are Degraded', 10],
    'byStatus.Pending': ['Clusters that are Pending', 7],
    'byStatus.Offline': ['Clusters that are Offline', 30],
  },
  BulkSiteChange: {
    '': [
      'A site to which every cluster of a target moves',
      { target: { selector: 'env=staging' }, siteId: 'site_01jd8w5k3zr9x2m4c7t6v0b1qa' },
    ],
  },
  BulkLabelChange: {
    '': [
      'Labels that are set on, or removed from, every cluster of a target',
      { target: { selector: 'env=staging' }, set: { tier: 'web' }, remove: ['legacy'] },
    ],
    remove: 'Keys of labels to remove. A key that a cluster lacks is ignored',
  },
  Target: {
    '': 'Clusters: exactly one of the members names them',
    clusterIds: ['These clusters; all must belong to the organisation', ['clus_01jd8w5k3zr9x2m4c7t6v0b1qa']],
  },
  'Node NodeSummary': nodeFields,
  NodeSummary: { clusterName: 'Name of the cluster' },
  Relay: {
    displayName: 'Name that the relay reported at enrollment',
    status: [
      '`Connected`: heartbeats arrive. `Stale`: one is overdue. `Disconnected`: it is silent. `Revoked`: another relay has replaced it',
      'Connected',
    ],
  },
  RelayUpdate: {
    version: 'Version that the relays install',
    canary: ['Number of relays that must complete the update before others start', 2],
    maxConcurrent: ['Maximum number of relays that install it at the same time', 20],
  },
  RelayUpdateCounts: {
    '': 'Number of clusters of a relay update by status',
    pending: 'Clusters whose relay has no offer yet',
    offered: 'Clusters whose relay has the offer and has not reported a result',
    completed: 'Clusters whose relay runs the version',
    rolledBack: 'Clusters whose relay returned to its previous version',
    skipped: 'Clusters whose relay got no offer, for example because it cannot update itself',
  },
  RelayUpdateCreation: { 'target.clusterIds': 'These clusters; all must belong to the organisation' },
  RelayUpdateCluster: { status: 'Progress of the relay of the cluster' },
  TimelineEntry: {
    at: 'Time of the entry; for a job, of its creation',
    startedAt: 'Time at which the job started',
    endedAt: 'Time at which the job ended',
    actor: 'For a job, the user who submitted it; for a cancelled job, the user who cancelled it, or the platform',
    kind: 'Source of the entry: a change of status, a job, an audit entry or another event',
    title: 'One line for a list',
    detail: 'Further information, such as the reason of a failure',
  },
  'EnrollmentKey CreatedEnrollmentKey EnrollmentKeyCreation': { name: 'Purpose of the key, for its list' },
  'EnrollmentKey CreatedEnrollmentKey': {
    type: ['Type of the new clusters', 'Hypervisor'],
    maxUses: ['How many relays can enroll with it', 500],
    usedCount: 'How many relays have enrolled with it',
    requireApproval: ['Whether new clusters wait for an approval', false],
    nameTemplate: 'Name of the new clusters; `{hostname}` is the name of the machine',
    expiresAt: 'Time after which no relay can enroll with it',
  },
  CreatedEnrollmentKey: {
    enrollmentKey: [undefined, 'plek_01jd8w5k3zr9x2m4c7t6v0b1qa_X5b0pJ3m7uKQ2vTn9rYs1dEw'],
  },
  'Site SiteCreation': { name: 'Name of the site, unique in the organisation' },
}
