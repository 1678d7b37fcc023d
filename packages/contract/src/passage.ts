/**
 * Paths of modules. They are not in the route table, because modules define the endpoints behind them. Gateways prefer
 * the routes of the table and send these paths to the function named here.
 */
export const modulePaths = {
  function: 'gateway/modules',
  paths: ['/api/{proxy+}', '/modules/{proxy+}'],
  capabilities: ['table:read', 'table:write', 'secret:signing-keys', 'modules:invoke', 'queue:events'],
} as const

/**
 * Requests that match no route: returns a file of the portal, its page for a browser navigation, or `route_not_found`.
 */
export const fallback = { function: 'portal', capabilities: [] } as const
