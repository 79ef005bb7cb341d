#include "src/runtime/stream_executor.h"

#include <exception>
#include <string>

#include "penstock/foreign.h"
#include "penstock/status_macros.h"
#include "src/base/user_code.h"
#include "src/runtime/executable_core.h"

namespace penstock::runtime {
namespace {

using Op = ExecCommand::Op;

// Keeps the device of the lane being fed current, and puts back what was current before.
class CurrentDevice {
 public:
  explicit CurrentDevice(driver::Driver& driver) : driver_(driver) {}
  ~CurrentDevice() {
    if (device_ >= 0) driver_.RestoreCurrent(token_);
  }
  void Set(int device) {
    if (device == device_) return;
    const int token = driver_.MakeCurrent(device);
    if (device_ < 0) token_ = token;
    device_ = device;
  }

 private:
  driver::Driver& driver_;
  int device_ = -1;
  int token_ = 0;
};

}  // namespace

bool StreamExecutor::Submit(Slot& slot, int32_t end) {
  CurrentDevice current(core_.driver());
  const std::vector<ExecCommand>& commands = core_.program().commands;
  for (; slot.next_command < end; ++slot.next_command) {
    const ExecCommand& command = commands[static_cast<size_t>(slot.next_command)];
    current.Set(core_.local_device_of_lane(command.lane));
    if (command.op == Op::kForeign && !core_.EnterGate(command.node)) return false;
    const absl::Status status = Do(slot, command);
    if (command.op == Op::kForeign) core_.LeaveGate(command.node);
    if (!status.ok()) {
      slot.fault.Fail(command.node, status);
      return false;
    }
  }
  return true;
}

void StreamExecutor::SubmitFinish(Slot& slot, int32_t end) {
  CurrentDevice current(core_.driver());
  const std::vector<ExecCommand>& commands = core_.program().commands;
  for (; slot.next_command < end; ++slot.next_command) {
    const ExecCommand& command = commands[static_cast<size_t>(slot.next_command)];
    current.Set(core_.local_device_of_lane(command.lane));
    if (const absl::Status status = Do(slot, command); !status.ok()) slot.fault.Fail(-1, status);
  }
}

absl::Status StreamExecutor::Do(Slot& slot, const ExecCommand& command) {
  driver::Driver& driver = core_.driver();
  const driver::Stream stream = slot.streams[static_cast<size_t>(command.lane)];
  const auto index = static_cast<size_t>(command.index);
  switch (command.op) {
    case Op::kRecord: return driver.Record(slot.events[index], stream);
    case Op::kWait: return driver.Wait(stream, slot.events[index]);
    default: break;
  }
  if (slot.begin_timing.empty()) return DoNode(slot, command);
  const auto node = static_cast<size_t>(command.node);
  PENSTOCK_RETURN_IF_ERROR(driver.Record(slot.begin_timing[node], stream));
  PENSTOCK_RETURN_IF_ERROR(DoNode(slot, command));
  return driver.Record(slot.end_timing[node], stream);
}

absl::Status StreamExecutor::DoNode(Slot& slot, const ExecCommand& command) {
  driver::Driver& driver = core_.driver();
  const driver::Stream stream = slot.streams[static_cast<size_t>(command.lane)];
  const auto index = static_cast<size_t>(command.index);
  switch (command.op) {
    case Op::kCopy: return driver.Copy(stream, slot.copies[index]);
    case Op::kFill: return driver.Fill(stream, slot.fills[index]);
    case Op::kForeign: return CallForeign(slot, command);
    default: break;
  }
  const driver::KernelOp& op = slot.kernels[index];
  return op.rows == 0 ? absl::OkStatus() : driver.Launch(stream, op);
}

absl::Status StreamExecutor::CallForeign(Slot& slot, const ExecCommand& command) {
  const graph::PlanNode& node = core_.plan().nodes[static_cast<size_t>(command.node)];
  const NodeCode& code = core_.model().nodes[static_cast<size_t>(node.decl)].code;
  Foreign foreign(core_.driver().NativeStream(slot.streams[static_cast<size_t>(command.lane)]), node.device,
                  core_.device(node.device).info.name);
  base::UserCodeScope scope;
  try {
    return code.call(code.callable.get(), &foreign, slot.kernels[static_cast<size_t>(command.index)].argv);
  } catch (const std::exception& e) {
    return absl::InternalError(std::string("the callable threw: ") + e.what());
  } catch (...) {
    return absl::InternalError("the callable threw something that is no std::exception");
  }
}

}  // namespace penstock::runtime
