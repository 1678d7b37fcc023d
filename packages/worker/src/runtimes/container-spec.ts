/** The configuration of a container (OCI runtime specification 1.0). */

export interface ContainerOptions {
  name: string
  root: string
  args: readonly string[]
  cwd: string
  env: Readonly<Record<string, string>>
  userId: number
  /** Host folder for the socket, mounted at `containerSocketFolder`. */
  socketFolder: string
  /** Host files that the container can read, by their paths in the container. */
  files: Readonly<Record<string, string>>
}

export interface MachineCapabilities {
  /** Whether an unprivileged user creates the containers, which requires a user namespace with some privileges. */
  isRootless: boolean
  /** Whether memory and processes can be limited. */
  hasLimits: boolean
}

export const containerSocketFolder = '/run/platform'

export const memoryMegabytes = 256
export const maxProcesses = 128
export const temporaryMegabytes = 64

/** System calls that modules do not need, and that could weaken their isolation. */
const blockedCalls =
  'add_key keyctl request_key bpf perf_event_open userfaultfd ptrace process_vm_readv process_vm_writev mount umount2 ' +
  'pivot_root setns unshare open_by_handle_at kexec_load init_module finit_module delete_module mount_setattr move_mount ' +
  'open_tree fsopen fsmount'

const mountFlags = ['nosuid', 'nodev']
const readOnlyOptions = ['bind', 'ro', ...mountFlags]

/** Returns the configuration of a container with a read-only root, its own namespaces and no privileges. */
export function containerSpec(options: ContainerOptions, { isRootless, hasLimits }: MachineCapabilities): object {
  const { userId, env } = options
  const namespaces = ['pid', 'network', 'ipc', 'uts', 'mount', 'cgroup', ...(isRootless ? ['user'] : [])]
  const noCapabilities = { bounding: [], effective: [], permitted: [], inheritable: [], ambient: [] }
  return {
    ociVersion: '1.0.2',
    hostname: options.name,
    root: { path: options.root, readonly: true },
    process: {
      terminal: false,
      user: { uid: userId, gid: userId },
      args: options.args,
      cwd: options.cwd,
      env: Object.entries(env).map(([name, value]) => `${name}=${value}`),
      noNewPrivileges: true,
      capabilities: noCapabilities,
      rlimits: [
        { type: 'RLIMIT_NOFILE', hard: 1024, soft: 1024 },
        { type: 'RLIMIT_CORE', hard: 0, soft: 0 },
      ],
    },
    mounts: mountsOf(options),
    linux: {
      namespaces: namespaces.map((type) => ({ type })),
      ...(isRootless && { uidMappings: idMappings(process.getuid?.()), gidMappings: idMappings(process.getgid?.()) }),
      ...(hasLimits && {
        resources: { memory: { limit: memoryMegabytes * 2 ** 20 }, pids: { limit: maxProcesses } },
      }),
      maskedPaths: [
        '/proc/kcore',
        '/proc/keys',
        '/proc/timer_list',
        '/proc/sched_debug',
        '/proc/scsi',
        '/sys/firmware',
      ],
      readonlyPaths: ['/proc/bus', '/proc/fs', '/proc/irq', '/proc/sys', '/proc/sysrq-trigger'],
      seccomp: {
        defaultAction: 'SCMP_ACT_ALLOW',
        syscalls: [
          { names: blockedCalls.split(' '), action: 'SCMP_ACT_ERRNO' },
          newUserNamespaceRule,
          // seccomp cannot inspect the flags of `clone3`. After ENOSYS (38), the C library calls `clone` instead.
          { names: ['clone3'], action: 'SCMP_ACT_ERRNO', errnoRet: 38 },
        ],
      },
    },
  }
}

/** A user namespace would restore some privileges. */
const cloneNewUser = 0x1000_0000
const newUserNamespaceRule = {
  names: ['clone'],
  action: 'SCMP_ACT_ERRNO',
  args: [{ index: 0, value: cloneNewUser, valueTwo: cloneNewUser, op: 'SCMP_CMP_MASKED_EQ' }],
}

/** Maps root of the container to this user of the host. No other user is mapped. */
const idMappings = (hostID = 0) => [{ containerID: 0, hostID, size: 1 }]

const mountsOf = ({ userId, socketFolder, files }: ContainerOptions) => [
  { destination: '/proc', type: 'proc', source: 'proc', options: [...mountFlags, 'noexec'] },
  temporaryMount('/dev', ['nosuid', 'strictatime', 'mode=755', 'size=64k']),
  temporaryMount('/tmp', [
    ...mountFlags,
    'noexec',
    `size=${temporaryMegabytes}m`,
    `uid=${userId}`,
    `gid=${userId}`,
    'mode=1777',
  ]),
  temporaryMount('/run', [...mountFlags, 'noexec', 'mode=755', 'size=64k']),
  {
    destination: containerSocketFolder,
    type: 'bind',
    source: socketFolder,
    options: ['bind', 'rw', ...mountFlags, 'noexec'],
  },
  ...Object.entries(files).map(([destination, source]) => ({
    destination,
    type: 'bind',
    source,
    options: readOnlyOptions,
  })),
]

const temporaryMount = (destination: string, options: string[]) => ({
  destination,
  type: 'tmpfs',
  source: 'tmpfs',
  options,
})
