// -----// IR Dump Before LayoutSlicesPass: iree-stream-layout-slices //----- //
util.func public @f(%arg0: !hal.buffer_view) {
  %c0 = arith.constant 0 : index
  %c256 = arith.constant 256 : index
  %c100 = arith.constant 100 : index
  %3:5 = stream.resource.pack on(#hal.device.affinity<@__device_0>) slices({
    [0, 1] = %c256,
    [1, 2] = %c100,
    [2, 3] = %c256,
    [3, 3] = %c100
  }) : index
  %1 = stream.resource.alloca uninitialized : !stream.resource<transient>{%3#0}
  stream.cmd.dispatch @a { wo %arg7[%3#1 for %c256] : !stream.resource<transient>{%3#0} }
  stream.cmd.dispatch @b { ro %arg7[%3#1 for %c256], wo %arg7[%3#2 for %c100] }
  stream.cmd.dispatch @c { ro %arg7[%3#2 for %c100], wo %arg7[%3#3 for %c256] }
  util.return
}

// -----// IR Dump After LayoutSlicesPass: iree-stream-layout-slices //----- //
util.func public @f(%arg0: !hal.buffer_view) {
  %c0 = arith.constant 0 : index
  %c256 = arith.constant 256 : index
  %c100 = arith.constant 100 : index
  %c0_1 = arith.constant 0 : index
  %c384 = arith.constant 384 : index
  %1 = stream.resource.alloca uninitialized : !stream.resource<transient>{%c384}
  stream.cmd.dispatch @a { wo %arg7[%c0_1 for %c256] : !stream.resource<transient>{%c384} }
  stream.cmd.dispatch @b { ro %arg7[%c0_1 for %c256], wo %arg7[%c256 for %c100] }
  stream.cmd.dispatch @c { ro %arg7[%c256 for %c100], wo %arg7[%c0 for %c256] }
  util.return
}

// -----// IR Dump Before LayoutSlicesPass: iree-stream-layout-slices //----- //
util.func public @g(%arg0: !hal.buffer_view) {
  util.return
}
