/**
 * Paths of modules. The route table does not list them, because modules define the endpoints behind them. Gateways
 * prefer the routes of the table and send other requests for these paths to `function`.
 */
export const modulePaths = {
  function: 'gateway/modules',
  paths: ['/api/{proxy+}', '/modules/{proxy+}'],
  capabilities: [
    'table:read',
    'table:write',
    'secret:module-token-keys',
    'secret:module-key',
    'modules:invoke',
    'queue:events',
  ],
} as const

/**
 * Function for requests that match no route. It returns a file of the portal, the portal page for a browser navigation,
 * or `route_not_found`.
 */
export const fallback = { function: 'portal', capabilities: [] } as const
