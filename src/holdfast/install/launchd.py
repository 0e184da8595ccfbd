"""The launchd property list (macOS), as text. Written from Apple's documentation and never tried by us."""

import plistlib

from holdfast.install.description import SUPERVISOR, Service

# launchd cannot tell 78 (fix the configuration) from other failures: it tries again, this often.
THROTTLE_S = 30
LOG = "service.log"


def plist(service: Service) -> str:
    content = {
        "Label": service.name,
        "ProgramArguments": list(service.command),
        **({"UserName": service.user} if service.user else {}),
        "EnvironmentVariables": {**service.variables, SUPERVISOR: "launchd"},
        "WorkingDirectory": service.folder,
        "RunAtLoad": True,
        # 0 is a stop that somebody asked for; 75 and every crash bring it back.
        "KeepAlive": {"SuccessfulExit": False},
        "ThrottleInterval": THROTTLE_S,
        "ExitTimeOut": service.killed_after_s,
        "Umask": 0o077,
        "StandardOutPath": f"{service.home}/{LOG}",
        "StandardErrorPath": f"{service.home}/{LOG}",
    }
    return plistlib.dumps(content, sort_keys=False).decode()
